#include "sim/ext4/extents/extent_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/random.h"
#include "tests/unit/ext4/extent_support.h"

namespace jbdlab::ext4 {
namespace {

using test::Events;
using test::ExtentFixture;
using testing::ElementsAre;

// ---- shapes: what kernel 6.18 made of the same calls (debugfs dump_extents)

// `sparse`: blocks 0, 2, 4, ... in order; `reverse`: the same from the end; `strided`: the same in
// steps of 389 (mod n). `fallocated`: n blocks at once, then `writes` of them, in steps of 389.
// Each is a one-block write with its fsync.
enum class Pattern { sparse, reverse, strided, fallocated };

struct Shape {
  const char* name;
  Pattern pattern;
  std::uint32_t block_size, n, writes;
  std::uint32_t depth;
  std::vector<std::size_t> leaves;  // entries of each
};

const std::vector<Shape> kShapes{
    {"FourFitIntoTheRoot", Pattern::sparse, 1024, 4, 4, 0, {4}},
    {"TheFifthMakesALeaf", Pattern::sparse, 1024, 5, 5, 1, {5}},
    {"FullLeavesStayFull", Pattern::sparse, 1024, 336, 336, 1, {84, 84, 84, 84}},
    {"AFullRootGrowsToDepth2", Pattern::sparse, 1024, 337, 337, 2, {84, 84, 84, 84, 1}},
    {"Blocks2K", Pattern::sparse, 2048, 677, 677, 2, {169, 169, 169, 169, 1}},
    {"Blocks4K", Pattern::sparse, 4096, 341, 341, 1, {340, 1}},
    {"ReverseSplitsAtTheFirst", Pattern::reverse, 1024, 400, 400, 2, {68, 83, 83, 83, 83}},
    {"Reverse4K", Pattern::reverse, 4096, 400, 400, 1, {61, 339}},
    {"Strided", Pattern::strided, 1024, 400, 400, 2, {56, 51, 37, 51, 84, 41, 80}},
    {"StridedLong", Pattern::strided, 1024, 1000, 1000, 2, {57, 54, 31, 25, 56, 29, 27, 83,
                                                            29, 54, 29, 82, 57, 54, 31, 25,
                                                            28, 84, 55, 54, 31, 25}},
    {"Strided2K",
     Pattern::strided,
     2048,
     1000,
     1000,
     2,
     {85, 139, 146, 53, 8, 122, 53, 7, 165, 30, 126, 66}},
    {"Strided4K", Pattern::strided, 4096, 1000, 1000, 1, {279, 334, 319, 68}},
    {"TheHeadIsCutOff", Pattern::fallocated, 1024, 1000, 1, 0, {2}},
    {"TheMiddleIsCutOut", Pattern::fallocated, 1024, 1000, 2, 0, {4}},
    {"ManyCuts", Pattern::fallocated, 1024, 1000, 200, 2, {24, 66, 66, 46, 44, 80, 30, 44}},
    {"WrittenPartsMerge", Pattern::fallocated, 1024, 1000, 700, 2, {35, 35, 20, 18, 29, 35, 22,
                                                                    18, 61, 16, 51, 18, 51, 35,
                                                                    33, 35, 28, 39, 20, 13}},
    {"LeavesDoNotMerge", Pattern::fallocated, 1024, 1000, 1000, 2, std::vector<std::size_t>(20, 1)},
    {"Cuts4K", Pattern::fallocated, 4096, 1000, 600, 2, {133, 179, 135, 179, 166, 13}},
    {"AllWritten4K", Pattern::fallocated, 4096, 1000, 1000, 2, {1, 1, 1, 1, 1, 1}},
};

class ExtentShape : public testing::TestWithParam<Shape> {};

TEST_P(ExtentShape, IsTheKernels) {
  const Shape& shape = GetParam();
  ExtentFixture fs(shape.block_size);
  fs.supply.place = [](const AllocationRequest& request) {
    return Allocation{FsBlock{40'000u + request.logical.value()}, request.len};
  };
  const bool fallocated = shape.pattern == Pattern::fallocated;
  if (fallocated) {
    const auto made = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{0}, shape.n,
                                        {.unwritten = true, .no_normalise = true}));
    ASSERT_TRUE(made && made->len == shape.n);
  }
  for (std::uint32_t i = 0; i < shape.writes; ++i) {
    std::uint32_t block = 2 * i;
    if (shape.pattern == Pattern::reverse) block = 2 * (shape.n - i);
    if (shape.pattern == Pattern::strided) block = 2 * (i * 389 % shape.n);
    if (fallocated) {
      block = i * 389 % shape.n;
      const auto cut = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{block}, 1,
                                         {.unwritten = true, .before_io = true}));
      ASSERT_TRUE(cut && cut->state == MappingState::unwritten && !cut->is_new);
    } else {
      fs.write_back(block, 1);
    }
    fs.journal.commit();
    ASSERT_TRUE(fs.convert(block, 1));
    fs.journal.commit();
  }
  EXPECT_EQ(fs.depth(), shape.depth);
  std::vector<std::size_t> sizes;
  for (const auto& leaf : fs.leaves()) sizes.push_back(leaf.size());
  EXPECT_EQ(sizes, shape.leaves);
}

INSTANTIATE_TEST_SUITE_P(Rows, ExtentShape, testing::ValuesIn(kShapes),
                         [](const auto& row) { return row.param.name; });

TEST(ExtentMap, GrowsToDepth3AsTheKernelDoes) {
  ExtentFixture fs(1024);
  for (std::uint32_t i = 0; i < 29'000; ++i) {
    fs.write_back(2 * i, 1);
    ASSERT_TRUE(fs.convert(2 * i, 1));
  }
  EXPECT_EQ(fs.depth(), 3u);
  const auto leaves = fs.leaves();
  ASSERT_EQ(leaves.size(), 346u);
  EXPECT_EQ(leaves[344].size(), 84u);
  EXPECT_EQ(leaves[345].size(), 20u);
}

// Where the nodes lie: for a split of several levels, the upper one is allocated first.
TEST(ExtentMap, AnIndexNodeLiesBeforeTheLeafThatItIsMadeFor) {
  ExtentFixture fs(1024);
  const std::uint32_t full = 84 * 84;  // one index node below the root, full of full leaves
  for (std::uint32_t i = 0; i < full; ++i) {
    fs.write_back(2 * i, 1);
    ASSERT_TRUE(fs.convert(2 * i, 1));
  }
  ASSERT_EQ(fs.depth(), 2u);
  ASSERT_EQ(ExtentNode(fs.inode.block).entries(), 1u);
  const FsBlock next{fs.supply.next_tree_block};
  fs.write_back(2 * full, 1);
  const ExtentNode root(fs.inode.block);
  ASSERT_EQ(root.entries(), 2u);
  EXPECT_EQ(root.index(1), (ExtentIndex{LogicalBlock{2 * full}, next}));
  const ExtentNode index(fs.buffers.get(next).data.bytes());
  EXPECT_EQ(index.index(0), (ExtentIndex{LogicalBlock{2 * full}, FsBlock{next.value() + 1}}));
  EXPECT_EQ(index.entries(), 1u);
  fs.leaves();
}

// The kernel's tree of 121 leaves, in short: index nodes split in the middle, too.
TEST(ExtentMap, SplitsIndexNodesAsTheKernelDoes) {
  ExtentFixture fs(1024);
  std::uint32_t root_entries = 0;
  for (std::uint32_t i = 0; i < 6000; ++i) {
    fs.journal.commit();
    fs.write_back(2 * (i * 389 % 6000), 1);
    if (ExtentNode(fs.inode.block).entries() != root_entries) {  // a split just now: all dirtied?
      root_entries = ExtentNode(fs.inode.block).entries();
      fs.leaves();
    }
    ASSERT_TRUE(fs.convert(2 * (i * 389 % 6000), 1));
  }
  const auto leaves = fs.leaves();
  ASSERT_EQ(leaves.size(), 121u);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) sum += (i + 1) * leaves[i].size();
  EXPECT_EQ(sum, 370'553u);
}

// A block that continues an extent of a full leaf needs no room in it.
TEST(ExtentMap, WhatContinuesAnExtentFitsIntoAFullLeaf) {
  struct Row {
    const char* name;
    std::uint32_t block, first, len;  // written; the extent that it becomes a part of
  };
  constexpr std::array kRows{
      Row{"behind the last", 836, 835, 2}, Row{"behind one in the middle", 406, 405, 2},
      Row{"before one in the middle", 404, 404, 2}, Row{"before the first", 4, 4, 2}};
  for (const Row& row : kRows) {
    ExtentFixture fs(1024);
    fs.supply.place = [](const AllocationRequest& request) {
      return Allocation{FsBlock{40'000u + request.logical.value()}, request.len};
    };
    for (std::uint32_t i = 0; i < 84; ++i) {
      ASSERT_TRUE(
          fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{10 * i + 5}, 1, kMapMetadata)));
    }
    fs.events.clear();
    ASSERT_TRUE(fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{row.block}, 1, kMapMetadata)));
    EXPECT_THAT(fs.events, testing::Not(testing::Contains("take node"))) << row.name;
    const auto extents = fs.extents();
    EXPECT_EQ(extents.size(), 84u) << row.name;
    const Extent want{LogicalBlock{row.first}, row.len, FsBlock{40'000u + row.first}, false};
    EXPECT_THAT(extents, testing::Contains(want)) << row.name;
  }
}

TEST(ExtentMap, ACutThatChangesNothingDirtiesTheLeafAllTheSame) {
  ExtentFixture fs(4096);
  fs.write_back(0, 8);
  fs.events.clear();
  const MapFlags flags{.unwritten = true, .before_io = true};
  const auto cut = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{0}, 8, flags));
  ASSERT_TRUE(cut && cut->len == 8);
  EXPECT_THAT(fs.events, ElementsAre("inode"));
}

// ---- what happens, in which order

struct Order {
  const char* name;
  std::vector<std::uint32_t> before;  // one-block extents that are there, written
  std::uint32_t block;                // of the write
  Events mapping, conversion;
};

const std::vector<Order> kOrders{
    {"AnAppendDirtiesTheInode", {0}, 1, {"take data", "inode", "nested inode"}, {"inode", "inode"}},
    {"TheFifthExtentMakesALeaf",
     {0, 2, 4, 6},
     8,
     {"take data", "take node", "nested inode", "node", "inode", "nested inode"},
     {"inode"}},
    {"AnAppendMayMakeALeafForTheTimeOfItsIo",
     {0, 2, 4, 6},
     7,
     {"take data", "take node", "nested inode", "node", "inode", "nested inode"},
     {"free node", "nested inode", "inode", "inode"}},
    {"ALeafIsDirtiedAlone", {0, 2, 4, 6, 8}, 10, {"take data", "nested inode"}, {"inode"}},
    {"ANewFirstExtentDirtiesTheIndex",
     {2, 4, 6, 8, 10},
     0,
     {"take data", "inode", "nested inode"},
     {"inode"}},
};

class ExtentOrder : public testing::TestWithParam<Order> {};

TEST_P(ExtentOrder, IsTheKernels) {
  ExtentFixture fs(4096);
  fs.supply.place = [](const AllocationRequest& request) {
    return Allocation{FsBlock{40'000u + request.logical.value()}, request.len};
  };
  for (const std::uint32_t block : GetParam().before) {
    fs.write_back(block, 1);
    ASSERT_TRUE(fs.convert(block, 1));
  }
  fs.journal.commit();
  fs.events.clear();
  fs.write_back(GetParam().block, 1);
  EXPECT_EQ(fs.events, GetParam().mapping);
  fs.events.clear();
  ASSERT_TRUE(fs.convert(GetParam().block, 1));
  EXPECT_EQ(fs.events, GetParam().conversion);
  fs.leaves();
}

INSTANTIATE_TEST_SUITE_P(Rows, ExtentOrder, testing::ValuesIn(kOrders),
                         [](const auto& row) { return row.param.name; });

TEST(ExtentMap, BlocksThatWereNotReservedAreCountedBeforeTheyAreTaken) {
  ExtentFixture fs(4096);
  ASSERT_TRUE(fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{0}, 3, kMapMetadata)));
  EXPECT_THAT(fs.events, ElementsAre("nested inode", "take data", "inode"));
  EXPECT_EQ(fs.inode.sectors, 24u);
}

// ---- delayed allocation

TEST(ExtentMap, ClaimsWhatWasReserved) {
  ExtentFixture fs(4096);
  fs.inode.reserved_blocks = 5;
  fs.volume.delayed_blocks = 9;
  fs.inode.writers = 0;
  const auto first = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{0}, 2, kMapDelayed));
  ASSERT_TRUE(first && first->is_new && first->state == MappingState::unwritten);
  EXPECT_EQ(fs.inode.reserved_blocks, 3u);
  EXPECT_EQ(fs.volume.delayed_blocks, 7u);
  EXPECT_EQ(fs.inode.sectors, 16u);
  EXPECT_EQ(fs.inode.sync_tid, Tid{7});
  EXPECT_EQ(fs.inode.datasync_tid, Tid{0});  // zeros are read with or without it
  EXPECT_THAT(fs.events, testing::Not(testing::Contains("discard")));
  ASSERT_TRUE(fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{2}, 3, kMapDelayed)));
  EXPECT_EQ(fs.events.back(), "discard");  // nothing is left, and nobody writes

  ASSERT_TRUE(fs.convert(0, 2));
  EXPECT_EQ(fs.inode.datasync_tid, Tid{7});
}

TEST(ExtentMap, TakesWhatTheAllocatorGives) {
  ExtentFixture fs(4096);
  fs.supply.place = [](const AllocationRequest& request) {
    return Allocation{FsBlock{50'000u + 2 * request.logical.value()}, std::min(request.len, 4u)};
  };
  const auto pieces = fs.write_back(0, 10);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2].first, LogicalBlock{8});
  EXPECT_EQ(pieces[2].len, 2u);
  EXPECT_EQ(pieces[2].physical, FsBlock{50'016});
  ASSERT_TRUE(fs.convert(0, 10));
  EXPECT_EQ(fs.extents().size(), 3u);
}

// ---- what the allocator is asked for

TEST(ExtentMap, AsksForTheHoleAndNamesItsNeighbours) {
  ExtentFixture fs(4096);
  std::vector<std::pair<std::optional<Neighbour>, std::optional<Neighbour>>> seen;
  fs.supply.place = [&](const AllocationRequest& request) {
    seen.emplace_back(request.left, request.right);
    return Allocation{FsBlock{50'000u + request.logical.value()}, request.len};
  };
  fs.write_back(10, 4);
  fs.write_back(30, 2);
  const auto made = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{20}, 100, kMapMetadata));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->len, 10u);  // up to the next extent
  const auto& asked = fs.supply.requests;
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].goal, FsBlock{32768});  // nothing is there: the inode's
  EXPECT_EQ(asked[1].goal, FsBlock{50'030});
  EXPECT_EQ(asked[2].goal, FsBlock{50'020});
  EXPECT_EQ(asked[2].len, 10u);
  EXPECT_FALSE(seen[0].first || seen[0].second);
  ASSERT_TRUE(seen[2].first && seen[2].second);
  EXPECT_EQ(seen[2].first->logical, LogicalBlock{13});
  EXPECT_EQ(seen[2].first->physical, FsBlock{50'013});
  EXPECT_EQ(seen[2].second->logical, LogicalBlock{30});
  EXPECT_EQ(seen[2].second->physical, FsBlock{50'030});

  fs.write_back(2, 1);  // before all others: the goal is as far before the first extent
  EXPECT_EQ(asked[3].goal, FsBlock{50'002});
  EXPECT_FALSE(seen[3].first.has_value());
  EXPECT_EQ(seen[3].second->logical, LogicalBlock{10});
}

TEST(ExtentMap, TheNeighbourMayLieInTheNextLeaf) {
  ExtentFixture fs(1024);
  for (std::uint32_t i = 0; i < 100; ++i) {  // leaves of 84 and 16
    fs.write_back(4 * i, 1);
    ASSERT_TRUE(fs.convert(4 * i, 1));
  }
  std::optional<Neighbour> right;
  fs.supply.place = [&](const AllocationRequest& request) {
    right = request.right;
    return Allocation{FsBlock{300'000}, request.len};
  };
  fs.write_back(4 * 83 + 2, 1);
  ASSERT_TRUE(right.has_value());
  EXPECT_EQ(right->logical, LogicalBlock{4 * 84});
  EXPECT_EQ(right->physical, FsBlock{40'084});
}

TEST(ExtentMap, TreeBlocksHaveGoalsOfTheirOwn) {
  ExtentFixture fs(1024);
  for (std::uint32_t i = 0; i < 337; ++i) {
    fs.write_back(2 * i, 1);
    ASSERT_TRUE(fs.convert(2 * i, 1));
  }
  std::vector<test::ListedBlocks::Seen> nodes;
  for (const auto& request : fs.supply.requests) {
    if (!request.data) nodes.push_back(request);
  }
  ASSERT_EQ(nodes.size(), 6u);
  EXPECT_EQ(nodes[0].goal, FsBlock{32768});  // the first leaf: as for the first block of the file
  // Further leaves: like the block that did not fit, behind the last extent by the distance in the
  // file.
  EXPECT_EQ(nodes[1].goal, FsBlock{40'000 + 83 + 2});
  // The root's contents: just before the first leaf, if that is free.
  EXPECT_EQ(nodes[4].goal, FsBlock{600'000 - 1});
  EXPECT_TRUE(nodes[4].try_goal);
  EXPECT_FALSE(nodes[5].try_goal);
}

// ---- when something is refused

TEST(ExtentMap, KeepsTheLeafIfTheHandleCannotGrow) {
  ExtentFixture fs(4096);
  fs.supply.place = [](const AllocationRequest& request) {
    return Allocation{FsBlock{40'000u + request.logical.value()}, request.len};
  };
  fs.journal.extends = false;
  for (const std::uint32_t block : {0u, 2u, 4u, 6u, 7u}) {
    fs.write_back(block, 1);
    ASSERT_TRUE(fs.convert(block, 1));
  }
  EXPECT_EQ(fs.depth(), 1u);
  EXPECT_EQ(fs.leaves().at(0).size(), 4u);
  fs.journal.extends = true;
  fs.write_back(8, 1);
  ASSERT_TRUE(fs.convert(8, 1));
  EXPECT_EQ(fs.depth(), 0u);
  EXPECT_EQ(fs.extents().size(), 4u);
}

TEST(ExtentMap, GivesTheDataBackIfTheTreeFindsNoBlock) {
  for (const bool delayed : {true, false}) {
    ExtentFixture fs(4096);
    for (std::uint32_t i = 0; i < 4; ++i) fs.write_back(2 * i, 1);
    const auto before = fs.extents();
    fs.supply.tree_blocks_left = 0;
    fs.inode.reserved_blocks = 1;
    fs.volume.delayed_blocks = 1;
    MapFlags flags = kMapDelayed;
    flags.delayed_reserved = delayed;
    const auto made = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{8}, 1, flags));
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error(), Errno::enospc);
    EXPECT_EQ(fs.inode.reserved_blocks, 1u);
    EXPECT_THAT(fs.events, testing::IsSupersetOf({"discard", "free"}));
    EXPECT_EQ(fs.extents(), before);  // and i_blocks is what it was
  }
}

TEST(ExtentMap, AnExtentStaysWholeIfACutFindsNoBlock) {
  ExtentFixture fs(4096);
  ASSERT_TRUE(fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{0}, 10, {.unwritten = true})));
  fs.write_back(20, 1);
  fs.write_back(30, 1);
  const auto before = fs.extents();
  ASSERT_EQ(before.size(), 3u);
  fs.supply.tree_blocks_left = 0;
  const MapFlags flags{.unwritten = true, .before_io = true};
  const auto cut = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{4}, 2, flags));
  ASSERT_FALSE(cut.has_value());
  EXPECT_EQ(cut.error(), Errno::enospc);
  const auto after = fs.extents();  // the first cut was made, the second was not
  ASSERT_EQ(after.size(), 4u);
  EXPECT_EQ(after[0].len, 6u);
  EXPECT_EQ(after[1].first, LogicalBlock{6});
  EXPECT_EQ(after[1].len, 4u);
}

TEST(ExtentMap, RefusesWhatWouldHaveToBeZeroed) {
  ExtentFixture fs(4096);
  ASSERT_TRUE(fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{0}, 10, {.unwritten = true})));
  const auto made = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{4}, 2, MapFlags{}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error(), Errno::eopnotsupp);
}

// ---- lookups

TEST(ExtentMap, LooksUpExtentsAndHoles) {
  ExtentFixture fs(1024);
  for (std::uint32_t i = 0; i < 100; ++i) fs.write_back(10 * i, 3);
  ASSERT_TRUE(fs.convert(0, 500));
  struct Row {
    std::uint32_t first, max_len, len;
    MappingState state;
    std::uint64_t physical;
  };
  constexpr std::array kRows{
      Row{0, 100, 3, MappingState::written, 40'000},
      Row{1, 1, 1, MappingState::written, 40'001},
      Row{3, 100, 7, MappingState::hole, 0},
      Row{5, 2, 2, MappingState::hole, 0},
      Row{501, 9, 2, MappingState::unwritten, 40'151},
      Row{833, 100, 7, MappingState::hole, 0},  // the last of its leaf
      Row{993, 100, 100, MappingState::hole, 0},
      Row{0xffff'fff0, 0xffff'ffff, 15, MappingState::hole, 0},
  };
  for (const Row& row : kRows) {
    const auto found = fs.run(fs.map.lookup(fs.inode, LogicalBlock{row.first}, row.max_len));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->len, row.len) << "block " << row.first;
    EXPECT_EQ(found->state, row.state) << "block " << row.first;
    EXPECT_EQ(found->physical, FsBlock{row.physical}) << "block " << row.first;
    EXPECT_FALSE(found->is_new);
  }
}

TEST(ExtentMap, AFileOfHolesIsOneHole) {
  ExtentFixture fs(4096);
  const auto found = fs.run(fs.map.lookup(fs.inode, LogicalBlock{0}, 0xffff'ffff));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->len, 0xffff'ffffu);
  EXPECT_EQ(found->state, MappingState::hole);
}

// ---- damage below the root

class DamagedTree : public testing::Test {
 protected:
  DamagedTree() {
    for (std::uint32_t i = 0; i < 5; ++i) fs.write_back(2 * i, 1);
    leaf = fs.buffers.find(FsBlock{600'000});
    leaf->verified = false;  // as if it had just been read
  }
  KResult<Mapping> look() { return fs.run(fs.map.lookup(fs.inode, LogicalBlock{4}, 1)); }

  ExtentFixture fs{4096};
  Buffer* leaf = nullptr;
};

TEST_F(DamagedTree, ASoundLeafIsCheckedOnce) {
  ASSERT_TRUE(look().has_value());
  EXPECT_TRUE(leaf->verified);
}
TEST_F(DamagedTree, AWrongChecksumIsFound) {
  leaf->data.mutate()[2000] = std::byte{1};
  ASSERT_FALSE(look().has_value());
  EXPECT_EQ(look().error(), Errno::euclean);
}
TEST_F(DamagedTree, ALeafOfAnotherFileIsFound) {
  fs.inode.generation ^= 1;
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, AnIndexThatPromisesAnotherBlockIsFound) {
  ExtentNodeEditor(fs.inode.block).set_first(0, LogicalBlock{1});
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, AWrongDepthIsFoundEvenIfItWasChecked) {
  leaf->verified = true;
  ExtentNodeEditor(leaf->data.mutate()).set_depth(1);
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, TooManyEntriesAreFoundEvenIfItWasChecked) {
  leaf->verified = true;
  ExtentNodeEditor(leaf->data.mutate()).set_entries(0xffff);
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, AChildOutsideIsFound) {
  ExtentNodeEditor(fs.inode.block).set_child(0, FsBlock{ExtentFixture::kBlocks});
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, TooMuchDepthIsFound) {
  ExtentNodeEditor(fs.inode.block).set_depth(6);
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, ARootThatIsNoneIsFound) {
  fs.inode.block.fill(std::byte{'x'});  // a symbolic link, say
  ASSERT_FALSE(look().has_value());
}
TEST_F(DamagedTree, ABlockOfZerosIsFound) {
  ExtentNodeEditor(fs.inode.block).set_child(0, FsBlock{700'000});  // read from the device
  ASSERT_FALSE(look().has_value());
}

// ---- any sequence of calls against a plain map

struct Block {
  std::uint64_t physical;
  bool unwritten;
  friend bool operator==(const Block&, const Block&) = default;
};

class ExtentProperty : public testing::TestWithParam<std::uint32_t> {
 protected:
  // Blocks near the goal if they are free, else far from all others; sometimes fewer than wanted.
  void scatter(ExtentFixture& fs) {
    fs.supply.place = [this](const AllocationRequest& request) {
      std::uint64_t start = request.goal.value();
      if (start < 40'000 || start >= 500'000 || random_.chance(1, 4)) {
        start = 40'000 + random_.below(460'000);
      }
      while (used_.contains(start)) ++start;
      std::uint32_t len = 0;
      const std::uint64_t most =
          random_.chance(1, 3) ? 1 + random_.below(request.len) : request.len;
      while (len < most && !used_.contains(start + len)) used_.insert(start + len++);
      return Allocation{FsBlock{start}, len};
    };
  }

  void step(ExtentFixture& fs) {
    const auto first = static_cast<std::uint32_t>(random_.below(3000));
    const auto len = static_cast<std::uint32_t>(1 + random_.below(random_.chance(1, 10) ? 200 : 6));
    const std::uint64_t what = random_.below(10);
    if (what < 2) {
      ASSERT_TRUE(fs.convert(first, len));
      for (std::uint32_t b = first; b < first + len; ++b) {
        if (const auto it = model_.find(b); it != model_.end()) it->second.unwritten = false;
      }
      return;
    }
    for (std::uint32_t at = first; at < first + len;) {
      MapFlags flags;
      if (what < 7) {
        flags = kMapDelayed;
      } else {
        flags.unwritten = what == 7;
        flags.before_io = !flags.unwritten && model_.contains(at) && model_.at(at).unwritten;
      }
      std::uint32_t want = first + len - at;
      const bool hole = !model_.contains(at);
      std::uint32_t run = 1;
      while (run < want && model_.contains(at + run) == !hole) ++run;
      if (hole) want = run;
      fs.inode.reserved_blocks = want;
      fs.volume.delayed_blocks = want;
      const auto made = fs.run(fs.map.map(fs.thread, fs.inode, LogicalBlock{at}, want, flags));
      ASSERT_TRUE(made.has_value());
      ASSERT_TRUE(made->first == LogicalBlock{at} && made->len >= 1 && made->len <= want);
      EXPECT_EQ(made->is_new, hole);
      for (std::uint32_t i = 0; i < made->len; ++i) {
        const Block block{made->physical.value() + i, made->state == MappingState::unwritten};
        if (hole) {
          EXPECT_EQ(block.unwritten, flags.unwritten);
          model_.emplace(at + i, block);
        }
        ASSERT_TRUE(model_.contains(at + i));
        ASSERT_EQ(model_.at(at + i), block) << "block " << at + i;
      }
      at += made->len;
    }
  }

  void compare(ExtentFixture& fs) {
    std::map<std::uint32_t, Block> seen;
    for (const Extent& extent : fs.extents()) {
      for (std::uint32_t i = 0; i < extent.len; ++i) {
        seen[extent.first.value() + i] = {extent.physical.value() + i, extent.unwritten};
      }
    }
    ASSERT_EQ(seen, model_);
    const auto at = static_cast<std::uint32_t>(random_.below(3300));
    const auto found = fs.run(fs.map.lookup(fs.inode, LogicalBlock{at}, 1000));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->state != MappingState::hole, model_.contains(at));
    if (found->state == MappingState::hole) {
      const auto next = model_.lower_bound(at);
      EXPECT_EQ(found->len, next == model_.end() ? 1000 : std::min(1000u, next->first - at));
    }
  }

  sim::Random random_{GetParam()};
  std::map<std::uint32_t, Block> model_;
  std::set<std::uint64_t> used_;
};

TEST_P(ExtentProperty, TheTreeIsTheMap) {
  ExtentFixture fs(GetParam() % 4 == 3 ? 4096 : 1024, GetParam() % 3 != 2);
  scatter(fs);
  for (int i = 0; i < 600; ++i) {
    step(fs);
    if (HasFatalFailure()) break;
    if (random_.chance(1, 3)) fs.journal.commit();
    if (i % 20 == 19) compare(fs);
    if (HasFailure()) break;
  }
  EXPECT_FALSE(HasFailure()) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExtentProperty,
                         testing::Range(0u, std::getenv("JBDLAB_LONG") != nullptr ? 300u : 12u));

// ---- credits (checked on 6.18: commit-path.md, section 2)

struct Credits {
  const char* name;
  std::uint64_t mebibytes;
  std::uint32_t block_size;
  std::uint32_t write, convert;
};

constexpr std::array kCredits{
    Credits{"FourGibibytes", 4096, 4096, 30, 18}, Credits{"HalfAGibibyte", 512, 4096, 22, 18},
    Credits{"TwoGroups", 256, 4096, 20, 18},      Credits{"OneGroup", 128, 4096, 30, 18},
    Credits{"Blocks1K", 128, 1024, 30, 41},       Credits{"Blocks2K", 256, 2048, 26, 23},
};

class ExtentCredits : public testing::TestWithParam<Credits> {};

TEST_P(ExtentCredits, AreTheKernels) {
  const Credits& row = GetParam();
  Geometry geometry;
  geometry.block_size = row.block_size;
  geometry.desc_size = 64;
  geometry.groups = static_cast<std::uint32_t>(
      (row.mebibytes << 20) / (std::uint64_t{8} * row.block_size * row.block_size));
  EXPECT_EQ(write_credits(geometry), row.write);
  EXPECT_EQ(convert_credits(geometry), row.convert);
}

INSTANTIATE_TEST_SUITE_P(Rows, ExtentCredits, testing::ValuesIn(kCredits),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace jbdlab::ext4
