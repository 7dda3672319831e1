#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace jbdlab {
namespace {

constexpr std::array<std::byte, 9> kBytes{std::byte{0x01}, std::byte{0x23}, std::byte{0x45},
                                          std::byte{0x67}, std::byte{0x89}, std::byte{0xAB},
                                          std::byte{0xCD}, std::byte{0xEF}, std::byte{0x10}};
constexpr std::span<const std::byte, 9> kView(kBytes);

static_assert(be<std::uint8_t, 8>(kView) == 0x10);
static_assert(be<std::uint16_t, 1>(kView) == 0x2345);
static_assert(be<std::uint32_t, 0>(kView) == 0x0123'4567);
static_assert(be<std::uint64_t, 1>(kView) == 0x2345'6789'ABCD'EF10);
static_assert(le<std::uint16_t, 1>(kView) == 0x4523);
static_assert(le<std::uint32_t, 0>(kView) == 0x6745'2301);
static_assert(le<std::uint64_t, 1>(kView) == 0x10EF'CDAB'8967'4523);

TEST(Bytes, AreWrittenWhereTheyAreRead) {
  std::vector<std::byte> block(16);
  set_be<std::uint32_t>(block, 3, 0xC03B'3998);
  set_le<std::uint16_t>(block, 9, 0x1234);
  EXPECT_EQ(get_be<std::uint32_t>(block, 3), 0xC03B'3998U);
  EXPECT_EQ(get_be<std::uint8_t>(block, 3), 0xC0U);
  EXPECT_EQ(get_le<std::uint32_t>(block, 3), 0x9839'3BC0U);
  EXPECT_EQ(get_be<std::uint16_t>(block, 9), 0x3412U);
  EXPECT_EQ(get_be<std::uint8_t>(block, 2), 0U);
  EXPECT_EQ(get_be<std::uint16_t>(block, 7), 0U);
}

TEST(BytesDeathTest, OffsetsBeyondTheSpanAreOurBug) {
  std::vector<std::byte> block(8);
  EXPECT_DEATH(static_cast<void>(get_be<std::uint32_t>(block, 5)), "offset");
  EXPECT_DEATH(set_le<std::uint64_t>(block, ~std::size_t{0}, 1), "offset");
}

}  // namespace
}  // namespace jbdlab
