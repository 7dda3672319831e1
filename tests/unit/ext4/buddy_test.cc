#include "sim/ext4/alloc/buddy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "sim/engine/random.h"
#include "sim/ext4/alloc/bitmaps.h"

namespace jbdlab::ext4 {
namespace {

// What a buddy says, counted from the set of free blocks without any cleverness.
class NaiveBuddy {
 public:
  NaiveBuddy(std::uint32_t block_bits, std::uint32_t blocks)
      : orders_(block_bits + 2), free_(blocks) {}

  std::vector<bool>& blocks() { return free_; }

  // The largest aligned free piece around `block`.
  std::uint32_t order_of(std::uint32_t block) const {
    std::uint32_t best = 0;
    for (std::uint32_t order = 1; order < orders_; ++order) {
      if (all_free(block >> order << order, 1U << order)) best = order;
    }
    return best;
  }
  bool all_free(std::uint32_t start, std::uint32_t len) const {
    for (std::uint32_t i = start; i < start + len; ++i) {
      if (i >= free_.size() || !free_[i]) return false;
    }
    return true;
  }
  // First blocks of all buddies of `order`.
  std::vector<std::uint32_t> buddies(std::uint32_t order) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < free_.size(); i += 1U << order) {
      if (free_[i] && order_of(i) == order && all_free(i, 1U << order)) found.push_back(i);
    }
    return found;
  }
  std::uint32_t fragments() const {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] && (i == 0 || !free_[i - 1])) ++n;
    }
    return n;
  }
  GroupRun find_extent(std::uint32_t block, std::uint32_t needed) const {
    if (!free_[block]) return {};
    std::uint32_t end = (block >> order_of(block)) + 1;
    end <<= order_of(block);
    while (end - block < needed && end < free_.size() && free_[end]) end += 1U << order_of(end);
    return {block, end - block};
  }

 private:
  std::uint32_t orders_;
  std::vector<bool> free_;
};

void expect_equal(const Buddy& buddy, NaiveBuddy& naive) {
  const auto& blocks = naive.blocks();
  ASSERT_EQ(buddy.free(), std::ranges::count(blocks, true));
  ASSERT_EQ(buddy.fragments(), naive.fragments());
  std::optional<std::uint32_t> largest;
  for (std::uint32_t order = 0; order < buddy.orders(); ++order) {
    const std::vector<std::uint32_t> want = naive.buddies(order);
    ASSERT_EQ(buddy.buddies(order), want.size()) << "order " << order;
    ASSERT_EQ(buddy.lowest_buddy(order), want.empty() ? std::nullopt : std::optional{want.front()});
    if (!want.empty()) largest = order;
  }
  ASSERT_EQ(buddy.largest_order(), largest);
  const auto first = std::ranges::find(blocks, true) - blocks.begin();
  ASSERT_LE(buddy.first_free(), first);
  ASSERT_EQ(buddy.next_free(buddy.first_free()), first);
}

class BuddyPropertyTest : public ::testing::TestWithParam<std::uint32_t> {};

// Random runs used and freed: the incremental buddy, one built from the bitmap, and the naive one
// agree after every step.
TEST_P(BuddyPropertyTest, EqualsItsDefinition) {
  sim::Random random(GetParam());
  const std::uint32_t bits = 6;  // a bitmap of 64 bytes: 512 blocks, orders 0 to 7
  const auto size =
      static_cast<std::uint32_t>(random.chance(1, 2) ? 512 : 8 * (1 + random.below(64)));
  Buddy buddy(bits, size);
  NaiveBuddy naive(bits, size);
  expect_equal(buddy, naive);
  for (int step = 0; step < 300; ++step) {
    const auto start = static_cast<std::uint32_t>(random.below(size));
    const bool free = naive.blocks()[start];
    std::uint32_t len = 0;
    const auto limit = 1 + random.below(random.chance(1, 4) ? 300 : 20);
    while (start + len < size && naive.blocks()[start + len] == free && len < limit) ++len;
    if (free) {
      buddy.mark_used(start, len);
    } else {
      buddy.mark_free(start, len);
    }
    std::fill_n(naive.blocks().begin() + start, len, !free);
    expect_equal(buddy, naive);
    if (HasFatalFailure()) FAIL() << "seed " << GetParam() << ", step " << step;

    const auto at = static_cast<std::uint32_t>(random.below(size));
    const auto needed = static_cast<std::uint32_t>(1 + random.below(100));
    ASSERT_EQ(buddy.find_extent(at, needed), naive.find_extent(at, needed))
        << "seed " << GetParam() << ", step " << step;

    std::vector<std::byte> bitmap(512 / 8, std::byte{0xFF});
    for (std::uint32_t i = 0; i < size; ++i) {
      if (naive.blocks()[i]) clear_bits(bitmap, i, 1);
    }
    Buddy built(bits, size);
    built.build(bitmap);
    expect_equal(built, naive);
    if (HasFatalFailure()) FAIL() << "built, seed " << GetParam() << ", step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BuddyPropertyTest, ::testing::Range(1U, 21U));

struct ExtentRow {
  const char* name;
  GroupRun free;  // the only free blocks of a group of 4096-byte blocks
  std::uint32_t block, needed;
  GroupRun want;
  friend void PrintTo(const ExtentRow& row, std::ostream* out) { *out << row.name; }
};

// mb_find_extent gives whole buddies, so what it finds depends on alignment.
constexpr ExtentRow kExtents[] = {
    {"AUsedBlockGivesNothing", {100, 10}, 99, 1, {0, 0}},
    {"OneBlockGivesTheRestOfItsBuddy", {64, 64}, 65, 1, {65, 63}},
    {"AnOddStartIsABuddyOfOne", {101, 27}, 101, 1, {101, 1}},
    {"BuddiesAreAddedUntilEnough", {101, 27}, 101, 4, {101, 11}},
    {"NoMoreThanThereIs", {101, 27}, 101, 1000, {101, 27}},
    {"TheLargestBuddyHasTwiceTheBlockSize", {0, 32768}, 0, 1, {0, 8192}},
    {"LargestBuddiesAreAddedToo", {0, 32768}, 0, 10000, {0, 16384}},
    {"AWholeGroup", {0, 32768}, 0, 32768, {0, 32768}},
    {"FromTheMiddleToTheEnd", {0, 32768}, 30000, 2768, {30000, 2768}},
};

class BuddyExtentTest : public ::testing::TestWithParam<ExtentRow> {};

TEST_P(BuddyExtentTest, FindsWholeBuddies) {
  const ExtentRow& row = GetParam();
  Buddy buddy(12, 32768);
  buddy.mark_free(row.free.start, row.free.len);
  EXPECT_EQ(buddy.find_extent(row.block, row.needed), row.want);
}

INSTANTIATE_TEST_SUITE_P(Rows, BuddyExtentTest, ::testing::ValuesIn(kExtents),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Buddy, DiesWhenABlockIsUsedTwice) {
  Buddy buddy(12, 32768);
  buddy.mark_free(10, 10);
  EXPECT_DEATH(buddy.mark_used(15, 6), "next_used");
  EXPECT_DEATH(buddy.mark_free(19, 2), "next_free");
}

}  // namespace
}  // namespace jbdlab::ext4
