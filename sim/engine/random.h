#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace jbdlab::sim {

// A stream of random integers: xoshiro256** (Blackman and Vigna, 2018), seeded through SplitMix64.
// The same seed and name give the same numbers on every machine. Each component of a run forks a
// stream of its own by name, so that one more draw here does not shift the numbers there.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : seed_(seed) {
    for (std::uint64_t& word : state_) word = splitmix(seed);
  }

  // An independent stream. Depends on this stream's seed and on `name`, not on its draws.
  constexpr Random fork(std::string_view name) const noexcept {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;  // FNV-1a
    for (const char c : name)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3U;
    std::uint64_t mixed = seed_ ^ hash;
    return Random(splitmix(mixed));
  }

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0: draws again instead of folding the uneven rest.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    CHECK(bound > 0);
    const std::uint64_t uneven = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t draw = next();
    while (draw < uneven) draw = next();
    return draw % bound;
  }

  // True in `numerator` of `denominator` cases.
  constexpr bool chance(std::uint64_t numerator, std::uint64_t denominator) noexcept {
    return below(denominator) < numerator;
  }

 private:
  static constexpr std::uint64_t splitmix(std::uint64_t& state) noexcept {
    std::uint64_t z = (state += 0x9E37'79B9'7F4A'7C15U);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9U;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t seed_;
  std::uint64_t state_[4]{};
};

}  // namespace jbdlab::sim
