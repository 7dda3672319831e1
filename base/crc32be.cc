#include "base/crc32be.h"

#include <array>
#include <cstddef>

namespace jbdlab {
namespace {

constexpr std::uint32_t kPolynomial = 0x04C1'1DB7;

// kSlices[k][b]: the register after byte b and k zero bytes; 16 bytes a round.
constexpr std::size_t kStep = 16;
constexpr auto kSlices = [] {
  std::array<std::array<std::uint32_t, 256>, kStep> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = b << 24;
    for (int bit = 0; bit < 8; ++bit) {
      r = (r << 1) ^ ((r & 0x8000'0000) != 0 ? kPolynomial : 0);
    }
    t[0][b] = r;
  }
  for (std::size_t k = 1; k < kStep; ++k) {
    for (std::size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] << 8) ^ t[0][t[k - 1][b] >> 24];
  }
  return t;
}();

}  // namespace

std::uint32_t crc32be(std::uint32_t seed, ByteSpan bytes) noexcept {
  std::uint32_t crc = seed;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kStep; left -= kStep, p += kStep) {
    const std::uint64_t high = detail::load<std::uint64_t, true>(p) ^ (std::uint64_t{crc} << 32);
    const std::uint64_t low = detail::load<std::uint64_t, true>(p + 8);
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      crc ^= kSlices[8 + k][(high >> (8 * k)) & 0xFF] ^ kSlices[k][(low >> (8 * k)) & 0xFF];
    }
  }
  for (; left != 0; --left, ++p) {
    crc = (crc << 8) ^ kSlices[0][(crc >> 24) ^ std::to_integer<std::uint32_t>(*p)];
  }
  return crc;
}

}  // namespace jbdlab
