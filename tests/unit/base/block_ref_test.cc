#include "base/block_ref.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace jbdlab {
namespace {

std::vector<std::byte> contents(const BlockRef& block) {
  std::vector<std::byte> out(block.size());
  block.copy_to(out);
  return out;
}

std::vector<std::byte> pattern_bytes(std::uint32_t seed, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> out(size);
  fill_pattern(seed, offset, out);
  return out;
}

TEST(Pattern, StartsAnywhere) {
  const auto all = pattern_bytes(42, 1000, 64);
  for (std::size_t at = 0; at < 32; ++at) {
    const auto part = pattern_bytes(42, 1000 + at, 17);
    ASSERT_TRUE(std::ranges::equal(part, std::span(all).subspan(at, 17))) << at;
  }
}

TEST(Pattern, SeedIsFnv1a) { EXPECT_EQ(pattern_seed("a"), 0xE40C292CU); }

TEST(BlockRef, HasNoContentsUntilItIsGivenSome) {
  const BlockRef none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.size(), 0U);
}

TEST(BlockRef, CopiesShareUntilOneIsChanged) {
  BlockRef a = BlockRef::copy_of(pattern_bytes(1, 0, 64));
  const BlockRef b = a;
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  a.mutate()[3] = std::byte{0xEE};
  EXPECT_NE(a.bytes().data(), b.bytes().data());
  EXPECT_EQ(contents(b), pattern_bytes(1, 0, 64));
  EXPECT_EQ(a.bytes()[3], std::byte{0xEE});
}

TEST(BlockRef, LooksTheSameAsBytesAndAsPattern) {
  const BlockRef pattern = BlockRef::pattern(64, 9, 4096, 10, 50);
  const std::vector<std::byte> before = contents(pattern);
  EXPECT_TRUE(std::ranges::equal(pattern.bytes(), before));
  std::vector<std::byte> want(64);
  std::ranges::copy(pattern_bytes(9, 4106, 40), want.begin() + 10);
  EXPECT_EQ(before, want);
}

TEST(BlockRef, ZerosAreZeros) {
  const BlockRef zeros = BlockRef::zeros(64);
  EXPECT_TRUE(zeros.is_zeros());
  EXPECT_EQ(contents(zeros), std::vector<std::byte>(64));
}

struct Overlay {
  std::uint32_t seed;
  std::uint64_t file_offset;
  std::uint32_t first, end;
};
struct Row {
  const char* name;
  std::vector<Overlay> overlays;
};

class BlockRefOverlay : public testing::TestWithParam<Row> {};

// Whatever the representation does, the contents are those of writing the bytes one after another.
TEST_P(BlockRefOverlay, GivesTheBytesOfTheWrites) {
  BlockRef block = BlockRef::zeros(64);
  std::vector<std::byte> want(64);
  for (const Overlay& o : GetParam().overlays) {
    const BlockRef before = block;
    const auto old = contents(before);
    block.overlay_pattern(o.seed, o.file_offset, o.first, o.end);
    fill_pattern(o.seed, o.file_offset + o.first,
                 MutableByteSpan(want).subspan(o.first, o.end - o.first));
    ASSERT_EQ(contents(block), want);
    ASSERT_EQ(contents(before), old);
  }
}

const Row kRows[] = {
    {"on_zeros", {{1, 0, 5, 9}}},
    {"that_continues", {{1, 0, 5, 9}, {1, 0, 9, 20}}},
    {"that_leaves_a_gap", {{1, 0, 5, 9}, {1, 0, 12, 20}}},
    {"of_another_file", {{1, 0, 5, 30}, {2, 0, 12, 20}}},
    {"of_another_place", {{1, 0, 5, 30}, {1, 64, 12, 20}}},
    {"of_all", {{1, 0, 5, 30}, {2, 8, 0, 64}}},
    {"then_more", {{1, 0, 5, 30}, {2, 8, 0, 10}, {1, 0, 10, 12}}},
};
INSTANTIATE_TEST_SUITE_P(Rows, BlockRefOverlay, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace jbdlab
