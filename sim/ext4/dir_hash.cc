#include "sim/ext4/dir_hash.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

namespace jbdlab::ext4 {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The value of a character as the hash sees it: sign-extended, unless characters are unsigned.
std::uint32_t value_of(char c, bool unsigned_chars) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  if (unsigned_chars) return byte;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<signed char>(byte)));
}

// The next `out.size()` words of a name: four characters to a word, and what the name does not fill
// is the length of its rest, repeated in every byte.
void fill_words(std::string_view rest, bool unsigned_chars, std::span<std::uint32_t> out) noexcept {
  const auto padding = static_cast<std::uint32_t>(rest.size()) * 0x0101'0101U;
  const std::string_view chunk = rest.substr(0, out.size() * 4);
  for (std::size_t word = 0; word < out.size(); ++word) {
    std::uint32_t value = padding;
    for (std::size_t i = word * 4; i < std::min(chunk.size(), word * 4 + 4); ++i) {
      value = (value << 8) + value_of(chunk[i], unsigned_chars);
    }
    out[word] = value;
  }
}

// One call of MD4's compression, cut to half: three rounds of eight steps over eight words (RFC
// 1320 has sixteen of each).
void half_md4(Words& state, const std::array<std::uint32_t, 8>& in) noexcept {
  struct Round {
    std::uint32_t constant;
    std::array<int, 4> shifts;
    std::array<std::size_t, 8> order;
  };
  static constexpr std::array<Round, 3> kRounds{{
      {0, {3, 7, 11, 19}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {0x5A82'7999, {3, 5, 9, 13}, {1, 3, 5, 7, 0, 2, 4, 6}},
      {0x6ED9'EBA1, {3, 9, 11, 15}, {3, 7, 2, 6, 1, 5, 0, 4}},
  }};
  Words v = state;
  for (std::size_t round = 0; round < kRounds.size(); ++round) {
    for (std::size_t step = 0; step < 8; ++step) {
      // The step updates word 0, 3, 2, 1, 0, ...: a rotation of the roles of a, b, c and d.
      const std::size_t a = (4 - step % 4) % 4;
      const std::uint32_t x = v[(a + 1) % 4];
      const std::uint32_t y = v[(a + 2) % 4];
      const std::uint32_t z = v[(a + 3) % 4];
      std::uint32_t mixed = 0;
      switch (round) {
        case 0:
          mixed = (x & y) | (~x & z);
          break;
        case 1:
          mixed = (x & y) | (x & z) | (y & z);
          break;
        default:
          mixed = x ^ y ^ z;
          break;
      }
      v[a] += mixed + in[kRounds[round].order[step]] + kRounds[round].constant;
      v[a] = std::rotl(v[a], kRounds[round].shifts[step % 4]);
    }
  }
  for (std::size_t i = 0; i < 4; ++i) state[i] += v[i];
}

// Sixteen cycles of the Tiny Encryption Algorithm (Wheeler and Needham) with the name as key.
void tea(Words& state, const std::array<std::uint32_t, 4>& key) noexcept {
  static constexpr std::uint32_t kDelta = 0x9E37'79B9;
  std::uint32_t v0 = state[0];
  std::uint32_t v1 = state[1];
  std::uint32_t sum = 0;
  for (int cycle = 0; cycle < 16; ++cycle) {
    sum += kDelta;
    v0 += ((v1 << 4) + key[0]) ^ (v1 + sum) ^ ((v1 >> 5) + key[1]);
    v1 += ((v0 << 4) + key[2]) ^ (v0 + sum) ^ ((v0 >> 5) + key[3]);
  }
  state[0] += v0;
  state[1] += v1;
}

// ext3's first hash; no seed, no minor hash.
std::uint32_t legacy(std::string_view name, bool unsigned_chars) noexcept {
  std::uint32_t last = 0x12A3'FE2D;
  std::uint32_t before = 0x37AB'E8F9;
  for (const char c : name) {
    std::uint32_t next = before + (last ^ (value_of(c, unsigned_chars) * 7'152'373U));
    if ((next & 0x8000'0000U) != 0) next -= 0x7FFF'FFFFU;
    before = last;
    last = next;
  }
  return last << 1;
}

}  // namespace

DirHash dir_hash(DirHashVersion version, bool unsigned_chars,
                 const std::array<std::uint32_t, 4>& seed, std::string_view name) noexcept {
  static constexpr Words kMd4Initial{0x6745'2301, 0xEFCD'AB89, 0x98BA'DCFE, 0x1032'5476};
  Words state =
      std::ranges::all_of(seed, [](std::uint32_t w) { return w == 0; }) ? kMd4Initial : seed;
  DirHash hash;
  switch (version) {
    case DirHashVersion::legacy:
      hash.major = legacy(name, unsigned_chars);
      break;
    case DirHashVersion::half_md4:
      for (std::size_t at = 0; at < name.size(); at += 32) {
        std::array<std::uint32_t, 8> in{};
        fill_words(name.substr(at), unsigned_chars, in);
        half_md4(state, in);
      }
      hash = {state[1], state[2]};
      break;
    case DirHashVersion::tea:
      for (std::size_t at = 0; at < name.size(); at += 16) {
        std::array<std::uint32_t, 4> in{};
        fill_words(name.substr(at), unsigned_chars, in);
        tea(state, in);
      }
      hash = {state[0], state[1]};
      break;
  }
  hash.major &= ~1U;
  // The largest value means "end of the directory" to readdir, so that no name may have it.
  if (hash.major == 0xFFFF'FFFEU) hash.major = 0xFFFF'FFFCU;
  return hash;
}

}  // namespace jbdlab::ext4
