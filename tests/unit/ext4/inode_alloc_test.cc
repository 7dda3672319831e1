#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/random.h"
#include "tests/unit/ext4/support_alloc.h"

// Which inode a new file or directory gets, as Linux 6.18 chose it on the same images.
namespace jbdlab::ext4::alloc_test {
namespace {

struct SpreadRow {
  const char* name;
  const char* options;
  const char* size;
  int directories;   // d0, d1, ... in the root
  const char* want;  // GROUPxHOW_MANY in a row
  friend void PrintTo(const SpreadRow& row, std::ostream* out) { *out << row.name; }
};

constexpr SpreadRow kSpreads[] = {
    // The lagging counters at work: with one flex group, only every 32nd looks as good as average.
    {"TwoGroups", "", "256M", 300,
     "0x1 1x7 0x25 1x16 0x16 1x16 0x16 1x16 0x16 1x16 0x16 1x16 0x16 1x16 0x16 1x16 0x16 1x16 0x16 "
     "1x11"},
    {"EightGroups", "", "1G", 64,
     "0x1 1x3 2x3 3x3 4x3 5x3 6x3 7x3 0x11 1x4 2x4 3x4 4x4 5x4 6x4 7x4 0x3"},
    {"SixteenGroups", "-O ^metadata_csum,uninit_bg", "2G", 64,
     "0x1 1x2 2x2 3x2 4x2 5x2 6x2 7x2 8x2 9x2 10x2 11x2 12x2 13x2 14x2 15x2 0x2 1x2 2x2 3x2 4x2 "
     "5x2 "
     "6x2 7x2 8x2 9x2 10x2 11x2 12x2 13x2 14x2 15x2 0x1"},
    {"TwoFlexGroups", "", "4G", 64,
     "16x7 1x2 2x2 3x2 4x2 5x2 6x2 7x2 8x2 9x2 10x2 11x2 12x2 13x1 16x16 1x1 2x1 3x1 4x1 5x1 6x1 "
     "7x1 8x1 9x1 10x1 11x1 12x1 13x2 14x2"},
    {"FlexGroupsOfFour", "-G 4", "2G", 64,
     "4x1 12x1 4x1 12x2 4x2 12x1 1x2 2x2 3x2 5x2 6x2 7x2 8x2 9x2 10x2 11x2 13x2 14x2 12x2 4x1 12x2 "
     "4x1 1x2 2x2 3x2 5x2 6x2 7x2 8x2 9x2 10x2 11x2 13x2 14x2 15x2"},
    {"NoFlexGroups", "-O ^flex_bg,^resize_inode", "512M", 64,
     "1x1 3x1 1x1 3x2 1x2 3x1 2x4 0x20 3x1 1x2 3x2 1x2 3x2 1x2 3x2 1x1 3x1 1x1 2x8 0x8"},
};

class SpreadTest : public ::testing::TestWithParam<SpreadRow> {};

TEST_P(SpreadTest, DirectoriesOfTheRoot) {
  const SpreadRow& row = GetParam();
  World world(make_image(row.options, row.size));
  std::vector<std::pair<std::uint32_t, int>> groups;
  for (int i = 0; i < row.directories; ++i) {
    const std::uint32_t group =
        world.make_directory(world.root, fmt::format("d{}", i)).group.value();
    if (groups.empty() || groups.back().first != group) groups.push_back({group, 0});
    ++groups.back().second;
  }
  std::string got;
  for (const auto& [group, times] : groups) {
    got += fmt::format("{}{}x{}", got.empty() ? "" : " ", group, times);
  }
  EXPECT_EQ(got, row.want);
}

INSTANTIATE_TEST_SUITE_P(Rows, SpreadTest, ::testing::ValuesIn(kSpreads),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(InodeAllocator, TakesTheLowestNumber) {
  World world(make_image("", "256M"));
  EXPECT_EQ(world.make_file(world.root, "f").ino, Ino{12});  // behind lost+found
  EXPECT_EQ(world.make_file(world.root, "g").ino, Ino{13});
}

TEST(InodeAllocator, FilesStayInTheFirstGroupOfTheirFlexGroup) {
  World world(make_image("", "256M"));
  Inode* d = nullptr;
  for (int i = 0; i < 3; ++i) d = &world.make_directory(world.root, fmt::format("d{}", i));
  ASSERT_EQ(d->group, GroupNo{1});
  EXPECT_EQ(world.make_file(*d, "f").group, GroupNo{0});
}

TEST(InodeAllocator, DirtiesBitmapThenDescriptor) {
  World world(make_image("", "256M"));
  world.make_file(world.root, "f");
  const GroupDesc desc = world.volume.desc(GroupNo{0});
  EXPECT_EQ(world.journal.take_dirtied(),
            (std::vector<std::uint64_t>{desc.inode_bitmap().value(), desc.buffer().block.value()}));
}

TEST(InodeAllocator, TheFirstInodeOfAnUninitialisedGroupBringsItsBlockBitmap) {
  World world(make_image("", "2G"));
  // d0 goes to group 0, d1 and d2 to group 1, which holds a copy of the superblock; d3 to group 2.
  for (int i = 0; i < 3; ++i) world.make_directory(world.root, fmt::format("d{}", i));
  const GroupNo group{2};
  ASSERT_NE(world.volume.desc(group).flags() & GroupDesc::kBlockUninit, 0);
  world.journal.take_dirtied();
  Inode& d3 = world.new_inode(world.root, kModeDirectory | 0755, "d3");
  ASSERT_EQ(d3.group, group);
  const GroupDesc desc = world.volume.desc(group);
  EXPECT_EQ(world.journal.take_dirtied(),
            (std::vector<std::uint64_t>{desc.inode_bitmap().value(), desc.block_bitmap().value(),
                                        desc.buffer().block.value()}));
  EXPECT_EQ(desc.flags() & (GroupDesc::kBlockUninit | GroupDesc::kInodeUninit), 0);
  EXPECT_EQ(desc.used_dirs(), 1u);
  EXPECT_EQ(desc.free_inodes(), world.geometry.inodes_per_group - 1);
  EXPECT_EQ(desc.itable_unused(), world.geometry.inodes_per_group - 1);
  EXPECT_TRUE(desc.checksum_ok());
  EXPECT_TRUE(desc.block_bitmap_checksum_ok(world.bitmaps.ready_block_bitmap(group).data.bytes()));
}

class FullTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FullTest, EveryNumberIsGivenOnce) {
  World world(make_image(GetParam(), "512M"));
  const std::uint64_t free = world.volume.free_inodes.sum();
  sim::Random random(3);
  std::vector<Inode*> directories{&world.root};
  std::set<Ino> given;
  for (std::uint64_t i = 0; i < free; ++i) {
    Inode& parent = *directories[random.below(directories.size())];
    const bool directory = random.chance(1, 10);
    const auto mode = static_cast<std::uint16_t>(directory ? kModeDirectory : kModeRegular);
    Inode& made = world.new_inode(parent, mode, fmt::format("n{}", i));
    ASSERT_GE(made.ino.value(), world.geometry.first_inode + 1);
    ASSERT_LE(made.ino.value(), world.geometry.inodes);
    ASSERT_TRUE(given.insert(made.ino).second);
    if (directory) directories.push_back(&made);
  }
  const KResult<Ino> more =
      world.run(world.numbers.allocate(world.thread, world.root, kModeRegular, "more"));
  EXPECT_EQ(more.error(), Errno::enospc);
  EXPECT_EQ(world.volume.free_inodes.sum(), 0u);
  std::uint64_t directories_counted = 0;
  for (std::uint32_t n = 0; n < world.geometry.groups; ++n) {
    const GroupDesc desc = world.volume.desc(GroupNo{n});
    EXPECT_EQ(desc.free_inodes(), 0u);
    EXPECT_EQ(desc.itable_unused(), 0u);
    EXPECT_TRUE(desc.checksum_ok());
    directories_counted += desc.used_dirs();
  }
  EXPECT_EQ(directories_counted, world.volume.directories.sum());
  EXPECT_EQ(directories_counted, directories.size() + 1);  // and lost+found
}

INSTANTIATE_TEST_SUITE_P(Options, FullTest,
                         ::testing::Values("-N 256", "-N 256 -G 2",
                                           "-N 256 -O ^flex_bg,^resize_inode",
                                           "-N 256 -O ^metadata_csum,uninit_bg"));

}  // namespace
}  // namespace jbdlab::ext4::alloc_test
