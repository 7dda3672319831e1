#include <ext2fs/ext2fs.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/crc32be.h"
#include "base/crc32c.h"

namespace jbdlab {
namespace {

using Function = std::uint32_t (*)(std::uint32_t, ByteSpan) noexcept;

constexpr std::string_view kDigits = "123456789";

ByteSpan bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Bytes without a pattern: an LCG's upper bits.
std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = 88172645463325252U;
  for (std::byte& b : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    b = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

const unsigned char* raw(ByteSpan bytes) {
  return static_cast<const unsigned char*>(static_cast<const void*>(bytes.data()));
}

std::uint32_t library_crc32c(std::uint32_t seed, ByteSpan bytes) noexcept {
  return ext2fs_crc32c_le(seed, raw(bytes), bytes.size());
}
std::uint32_t library_crc32be(std::uint32_t seed, ByteSpan bytes) noexcept {
  return ext2fs_crc32_be(seed, raw(bytes), bytes.size());
}

struct Row {
  const char* name;
  Function function;
  Function library;
  std::uint32_t of_digits_from_ones;
  std::uint32_t of_digits_from_zero;
};
constexpr Row kRows[] = {
    {"crc32c", crc32c, library_crc32c, 0x1cf96d7c, 0x58e3fa20},
    {"crc32c_portable", crc32c_portable, library_crc32c, 0x1cf96d7c, 0x58e3fa20},
    {"crc32be", crc32be, library_crc32be, 0x0376e6e7, 0x89a1897f},
};

class Crc : public testing::TestWithParam<Row> {};

TEST_P(Crc, HasTheCheckValues) {
  EXPECT_EQ(GetParam().function(0xFFFF'FFFF, bytes_of(kDigits)), GetParam().of_digits_from_ones);
  EXPECT_EQ(GetParam().function(0, bytes_of(kDigits)), GetParam().of_digits_from_zero);
}

TEST_P(Crc, OfNothingIsTheSeed) { EXPECT_EQ(GetParam().function(0x1234'5678, {}), 0x1234'5678U); }

TEST_P(Crc, ContinuesAtEverySplit) {
  const std::vector<std::byte> bytes = noise(600);
  const ByteSpan all(bytes);
  const std::uint32_t whole = GetParam().function(7, all);
  for (std::size_t split = 0; split <= all.size(); ++split) {
    const std::uint32_t first = GetParam().function(7, all.first(split));
    ASSERT_EQ(GetParam().function(first, all.subspan(split)), whole) << split;
  }
}

TEST_P(Crc, AgreesWithLibext2fsForEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = noise(8 * 1024);
  const ByteSpan all(bytes);
  for (std::size_t offset = 0; offset < 16; ++offset) {
    for (std::size_t size = 0; size <= 1100; ++size) {
      const ByteSpan part = all.subspan(offset, size);
      ASSERT_EQ(GetParam().function(0xFFFF'FFFF, part), GetParam().library(0xFFFF'FFFF, part))
          << size << " bytes at " << offset;
    }
    for (std::size_t size = 4060; size <= 4200; ++size) {  // around three long stretches
      const ByteSpan part = all.subspan(offset, size);
      ASSERT_EQ(GetParam().function(1, part), GetParam().library(1, part))
          << size << " bytes at " << offset;
    }
  }
  EXPECT_EQ(GetParam().function(0, all), GetParam().library(0, all));
}

INSTANTIATE_TEST_SUITE_P(Rows, Crc, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace jbdlab
