#include "base/crc32c.h"

#include <array>
#include <cstddef>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace jbdlab {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F6'3B78;  // reflected

// kSlices[k][b]: the register after byte b and k zero bytes.
constexpr auto kSlices = [] {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? kPolynomial : 0);
    t[0][b] = r;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xFF];
  }
  return t;
}();

constexpr std::uint32_t byte_step(std::uint32_t crc, std::byte b) noexcept {
  return (crc >> 8) ^ kSlices[0][(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFF];
}

#if defined(__x86_64__)

// Product of two polynomials modulo the CRC's; bit 31 is x^0 in the reflected order.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t mask = 0x8000'0000; mask != 0; mask >>= 1) {
    if ((a & mask) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// x^(8 * bytes): what `bytes` zero bytes multiply the register with.
constexpr std::uint32_t shift_factor(std::size_t bytes) noexcept {
  std::uint32_t result = 0x8000'0000;
  std::uint32_t power = 0x0080'0000;  // x^8
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) result = multiply(result, power);
    power = multiply(power, power);
  }
  return result;
}

// The register after `Bytes` zero bytes, by one look-up for each of its four bytes.
template <std::size_t Bytes>
struct ZeroShift {
  static constexpr auto kTable = [] {
    std::array<std::array<std::uint32_t, 256>, 4> t{};
    const std::uint32_t factor = shift_factor(Bytes);
    for (std::uint32_t k = 0; k < 4; ++k) {
      for (std::uint32_t b = 0; b < 256; ++b) t[k][b] = multiply(b << (8 * k), factor);
    }
    return t;
  }();
  static std::uint32_t apply(std::uint64_t crc) noexcept {
    return kTable[0][crc & 0xFF] ^ kTable[1][(crc >> 8) & 0xFF] ^ kTable[2][(crc >> 16) & 0xFF] ^
           kTable[3][(crc >> 24) & 0xFF];
  }
};

std::uint64_t word(const std::byte* p) noexcept { return detail::load<std::uint64_t, false>(p); }

// The crc32 instruction takes 3 cycles and one can start each cycle, so three independent stretches
// of `Stretch` bytes are summed side by side and then combined.
template <std::size_t Stretch>
[[gnu::target("sse4.2")]] std::uint64_t three_stretches(std::uint64_t crc,
                                                        const std::byte* p) noexcept {
  static_assert(Stretch % 8 == 0);
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (std::size_t i = 0; i < Stretch; i += 8) {
    crc = _mm_crc32_u64(crc, word(p + i));
    second = _mm_crc32_u64(second, word(p + Stretch + i));
    third = _mm_crc32_u64(third, word(p + 2 * Stretch + i));
  }
  return ZeroShift<Stretch>::apply(ZeroShift<Stretch>::apply(crc) ^ second) ^ third;
}

[[gnu::target("sse4.2")]] std::uint32_t crc32c_sse42(std::uint32_t seed, ByteSpan bytes) noexcept {
  // 3 * 1360 is just below 4096, the common block; 3 * 168 takes what shorter blocks leave.
  constexpr std::size_t kLong = 1360;
  constexpr std::size_t kShort = 168;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t crc = seed;
  for (; left >= 3 * kLong; left -= 3 * kLong, p += 3 * kLong) crc = three_stretches<kLong>(crc, p);
  for (; left >= 3 * kShort; left -= 3 * kShort, p += 3 * kShort) {
    crc = three_stretches<kShort>(crc, p);
  }
  for (; left >= 8; left -= 8, p += 8) crc = _mm_crc32_u64(crc, word(p));
  auto last = static_cast<std::uint32_t>(crc);
  for (; left != 0; --left, ++p) last = _mm_crc32_u8(last, std::to_integer<std::uint8_t>(*p));
  return last;
}

bool has_sse42() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

#endif

}  // namespace

std::uint32_t crc32c_portable(std::uint32_t seed, ByteSpan bytes) noexcept {
  std::uint32_t crc = seed;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    const std::uint64_t w = detail::load<std::uint64_t, false>(p) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kSlices[7 - k][(w >> (8 * k)) & 0xFF];
  }
  for (; left != 0; --left, ++p) crc = byte_step(crc, *p);
  return crc;
}

#if defined(__x86_64__)
bool crc32c_is_accelerated() noexcept { return has_sse42(); }

std::uint32_t crc32c(std::uint32_t seed, ByteSpan bytes) noexcept {
  return has_sse42() ? crc32c_sse42(seed, bytes) : crc32c_portable(seed, bytes);
}
#else
bool crc32c_is_accelerated() noexcept { return false; }

std::uint32_t crc32c(std::uint32_t seed, ByteSpan bytes) noexcept {
  return crc32c_portable(seed, bytes);
}
#endif

}  // namespace jbdlab
