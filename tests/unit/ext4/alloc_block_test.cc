#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/random.h"
#include "tests/unit/ext4/support_alloc.h"

// Where blocks land, as Linux 6.18 places them on the same images (watched through FIEMAP; mounted
// with no_prefetch_block_bitmaps, since the kernel's prefetch some seconds after mount is a race).
namespace jbdlab::ext4 {

inline void PrintTo(const Allocation& run, std::ostream* out) {
  *out << run.start.value() << "+" << run.len;
}
inline bool operator==(const Allocation& a, const Allocation& b) {
  return a.start == b.start && a.len == b.len;
}

namespace alloc_test {
namespace {

using Runs = std::vector<Allocation>;

const sim::BlockStore& image_256m() {
  static const sim::BlockStore image = make_image("", "256M");
  return image;
}

TEST(BlockPlacement, FirstAreaOfAFreshMountIsInTheFirstGroup) {
  // Group 1 is preferred, but its buddy is not in memory yet.
  World world(image_256m());
  EXPECT_EQ(world.append(world.make_file(world.root, "f"), 4), (Runs{{FsBlock{4139}, 4}}));
}

TEST(BlockPlacement, AfterOneMkdirTheFirstAreaIsAlignedInTheSecondGroup) {
  World world(image_256m());
  FsBlock entries;
  world.make_directory(world.root, "d", &entries);
  EXPECT_EQ(entries, FsBlock{4139});
  EXPECT_EQ(world.append(world.make_file(world.root, "f"), 4), (Runs{{FsBlock{37376}, 4}}));
}

TEST(BlockPlacement, SmallFilesFollowOneAnotherWhateverTheirDirectory) {
  World world(image_256m());
  Inode& a = world.make_directory(world.root, "a");
  Inode& b = world.make_directory(world.root, "b");
  std::uint64_t next = 0;
  for (int i = 0; i < 40; ++i) {
    const Runs runs = world.append(world.make_file(i % 2 == 0 ? a : b, "f"), 5);
    ASSERT_EQ(runs.size(), 1u);
    if (i > 0) {
      EXPECT_EQ(runs[0].start.value(), next) << i;
    }
    next = runs[0].start.value() + 5;
  }
}

TEST(BlockPlacement, EveryCpuHasItsOwnAreaForSmallFiles) {
  World world(image_256m());
  world.make_directory(world.root, "d");
  const Runs first = world.append(world.make_file(world.root, "f"), 1);
  world.thread.cpu = 1;
  const Runs second = world.append(world.make_file(world.root, "g"), 1);
  EXPECT_EQ(second, (Runs{{FsBlock{first[0].start.value() + 512}, 1}}));
}

TEST(BlockPlacement, AWindowIsContinuedAndTheRestGivenBackAtClose) {
  // Kernel: d/g 36928+140, d/h 37088+317.
  World world(image_256m());
  world.append(world.make_file(world.root, "f"), 4);
  Inode& d = world.make_directory(world.root, "d");
  Inode& g = world.make_file(d, "g");
  EXPECT_EQ(world.append(g, 40), (Runs{{FsBlock{36928}, 40}}));
  EXPECT_EQ(world.append(g, 100), (Runs{{FsBlock{36968}, 100}}));
  world.close(g);
  Inode& h = world.make_file(d, "h");
  EXPECT_EQ(world.append(h, 17), (Runs{{FsBlock{37088}, 17}}));
  EXPECT_EQ(world.append(h, 300), (Runs{{FsBlock{37105}, 300}}));
}

TEST(BlockPlacement, WithoutAWriterAFileGetsNoMoreThanItNeeds) {
  World world(image_256m());
  world.make_directory(world.root, "d");
  Inode& f = world.make_file(world.root, "f");
  f.writers = 0;
  const Runs first = world.append(f, 20);
  Inode& g = world.make_file(world.root, "g");
  g.writers = 0;
  EXPECT_EQ(world.append(g, 20), (Runs{{FsBlock{first[0].start.value() + 20}, 20}}));
}

struct WindowRow {
  const char* name;
  std::uint32_t block_size;
  std::uint64_t size;     // of the file, bytes, after the write
  std::uint32_t logical;  // request, in blocks
  std::uint32_t len;
  std::optional<std::uint32_t> left, right;  // neighbours' logical blocks
  std::uint32_t start, want_len;             // the window
  friend void PrintTo(const WindowRow& row, std::ostream* out) { *out << row.name; }
};

constexpr std::uint64_t kK = 1024;
constexpr WindowRow kWindows[] = {
    {"UpTo128K", 4096, 80 * kK, 0, 20, {}, {}, 0, 32},
    {"Exactly128K", 4096, 128 * kK, 0, 32, {}, {}, 0, 32},
    {"UpTo256K", 4096, 129 * kK, 0, 33, {}, {}, 0, 64},
    {"UpTo512K", 4096, 400 * kK, 10, 90, {}, {}, 0, 128},
    {"UpTo1M", 4096, 600 * kK, 0, 150, {}, {}, 0, 256},
    {"UpTo4MTakesPiecesOf2M", 4096, 3000 * kK, 700, 50, {}, {}, 512, 512},
    {"UpTo8MTakesPiecesOf4M", 4096, 5000 * kK, 1200, 50, {}, {}, 1024, 1024},
    {"MoreTakesPiecesOf8M", 4096, 20000 * kK, 4500, 500, {}, {}, 4096, 2048},
    {"TheSizeOfTheFileCounts", 4096, 900 * kK, 0, 20, {}, {}, 0, 256},
    {"TheLeftNeighbourCutsTheStart", 4096, 200 * kK, 20, 30, 19, {}, 20, 44},
    {"TheRightNeighbourCutsTheEnd", 4096, 800 * kK, 0, 20, {}, 100, 0, 100},
    {"BothCut", 4096, 800 * kK, 50, 20, 40, 90, 41, 49},
    {"SmallBlocksTakePiecesOf2MAtMost", 1024, 20000 * kK, 18000, 500, {}, {}, 16384, 2048},
    {"MiddleBlocksTakePiecesOf4MAtMost", 2048, 20000 * kK, 9000, 500, {}, {}, 8192, 2048},
};

class WindowTest : public ::testing::TestWithParam<WindowRow> {};

TEST_P(WindowTest, IsNormalised) {
  const WindowRow& row = GetParam();
  Geometry geometry;
  geometry.block_size = row.block_size;
  geometry.block_bits = row.block_size == 1024 ? 10 : row.block_size == 2048 ? 11 : 12;
  geometry.blocks = 1'000'000;
  geometry.blocks_per_group = 8 * row.block_size;
  geometry.groups = 31;
  sim::Engine engine;
  Inode inode(Ino{12}, engine);
  inode.size = row.size;
  AllocationRequest request{.inode = inode};
  if (row.left) request.left = Neighbour{LogicalBlock{*row.left}, FsBlock{50'000}};
  if (row.right) request.right = Neighbour{LogicalBlock{*row.right}, FsBlock{60'000}};
  AllocationContext context{.inode = inode};
  context.original = context.goal = {row.logical, GroupNo{1}, 0, row.len};
  context.data = context.stream = true;
  normalise(context, request, geometry);
  EXPECT_EQ(context.goal.logical, row.start);
  EXPECT_EQ(context.goal.len, row.want_len);
  const bool touches = (row.left && *row.left + 1 == row.start) ||
                       (row.right && *row.right == row.start + row.want_len);
  EXPECT_EQ(context.try_goal, touches);
}

INSTANTIATE_TEST_SUITE_P(Rows, WindowTest, ::testing::ValuesIn(kWindows),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(BlockAllocator, DirtiesInodeBitmapAndDescriptorInThisOrder) {
  World world(image_256m());
  Inode& file = world.make_file(world.root, "f");
  world.journal.take_dirtied();
  AllocationRequest request{.inode = file};
  request.goal = world.blocks.inode_goal(world.thread, file);
  ASSERT_TRUE(world.run(world.blocks.allocate(world.thread, request)));
  const GroupDesc desc = world.volume.desc(GroupNo{0});
  const std::uint64_t bitmap = desc.block_bitmap().value();
  const std::uint64_t table = desc.buffer().block.value();
  EXPECT_EQ(world.journal.take_dirtied(), (std::vector<std::uint64_t>{0, bitmap, table}));
  EXPECT_EQ(file.sectors, 8u);
  // Delayed: the caller counts the blocks.
  world.append(file, 1);
  EXPECT_EQ(world.journal.take_dirtied(), (std::vector<std::uint64_t>{bitmap, table}));
  EXPECT_EQ(file.sectors, 8u);
}

TEST(BlockAllocator, FreedBlocksAreUsedAgainOnlyAfterTheCommit) {
  World world(image_256m());
  Inode& d = world.make_directory(world.root, "d");
  const FsBlock goal = world.blocks.inode_goal(world.thread, d);
  const AllocationRequest request{.inode = d, .goal = goal, .data = false};
  const auto allocate = [&] { return *world.run(world.blocks.allocate(world.thread, request)); };
  const FsBlock first = allocate().start;
  const std::uint64_t free = world.volume.free_blocks.sum();
  ASSERT_TRUE(world.run(world.blocks.free(world.thread, d, first, 1, true)));
  EXPECT_EQ(world.journal.forgotten, std::vector{first});
  EXPECT_EQ(world.volume.free_blocks.sum(), free + 1);
  EXPECT_EQ(world.blocks.free_pending(), 1u);
  EXPECT_EQ(allocate().start, FsBlock{first.value() + 1});
  world.blocks.on_commit(Tid{6});
  EXPECT_EQ(allocate().start, FsBlock{first.value() + 2});
  world.blocks.on_commit(world.journal.running);
  EXPECT_EQ(world.blocks.free_pending(), 0u);
  EXPECT_EQ(allocate().start, first);
}

TEST(BlockAllocator, FreesAcrossGroups) {
  World world(image_256m());
  Inode& file = world.make_file(world.root, "f");
  std::uint64_t len = 0;
  const Runs runs = world.append(file, 40'000);
  for (const Allocation& run : runs) len += run.len;
  ASSERT_EQ(len, 40'000u);
  world.close(file);
  file.sectors = 8 * len;
  for (const Allocation& run : runs) {
    ASSERT_TRUE(world.run(world.blocks.free(world.thread, file, run.start, run.len, false)));
  }
  EXPECT_EQ(file.sectors, 0u);
  world.blocks.on_commit(world.journal.running);
  // All is as it was: the same file fits again, in the same blocks.
  World fresh(image_256m());
  EXPECT_EQ(world.volume.free_blocks.sum(), fresh.volume.free_blocks.sum());
}

TEST(BlockAllocator, RefusesToFreeWhatIsFree) {
  World world(image_256m());
  Inode& file = world.make_file(world.root, "f");
  file.sectors = 800;
  const auto freed = [&](std::uint64_t block, std::uint32_t len) {
    return world.run(world.blocks.free(world.thread, file, FsBlock{block}, len, false));
  };
  EXPECT_EQ(freed(50'000, 1).error(), Errno::euclean);
  EXPECT_EQ(freed(65'535, 2).error(), Errno::euclean);
}

TEST(BlockAllocator, GivesAllBlocksButThoseKeptAndThenNone) {
  World world(make_image("", "24M"));
  const std::uint64_t free = world.volume.free_blocks.sum();
  const std::uint64_t kept = world.geometry.blocks / 50;
  Inode& file = world.make_file(world.root, "f");
  EXPECT_EQ(world.blocks.claim_delayed(static_cast<std::uint32_t>(free - kept + 1)).error(),
            Errno::enospc);
  std::set<std::uint64_t> used;
  // Blocks one by one into many files, with windows and areas that stand in the way.
  std::vector<Inode*> files{&file};
  sim::Random random(5);
  for (std::uint64_t i = 0; i < free - kept; ++i) {
    if (random.chance(1, 20)) files.push_back(&world.make_file(world.root, "g"));
    Inode& to = *files[random.below(files.size())];
    const Runs runs = world.append(to, 1);
    ASSERT_EQ(runs.size(), 1u) << i;
    EXPECT_TRUE(used.insert(runs[0].start.value()).second);
  }
  EXPECT_EQ(world.blocks.claim_delayed(1).error(), Errno::enospc);
  AllocationRequest request{.inode = file, .data = false};
  EXPECT_EQ(world.run(world.blocks.allocate(world.thread, request)).error(), Errno::enospc);
  EXPECT_EQ(file.sectors, 0u);
  // What is kept serves those that must not fail.
  request.use_reserved = true;
  for (std::uint64_t i = 0; i < kept; ++i) {
    const KResult<Allocation> got = world.run(world.blocks.allocate(world.thread, request));
    ASSERT_TRUE(got) << i;
    EXPECT_TRUE(used.insert(got->start.value()).second);
  }
  EXPECT_EQ(world.run(world.blocks.allocate(world.thread, request)).error(), Errno::enospc);
  EXPECT_EQ(world.volume.free_blocks.sum(), 0u);
  EXPECT_EQ(used.size(), free);
}

struct TrimRow {
  const char* name;
  int areas;
  std::uint64_t want;
  friend void PrintTo(const TrimRow& row, std::ostream* out) { *out << row.name; }
};
// 34 files of 15 blocks leave 2 of an area of 512. The ninth such rest cuts the list to five.
constexpr TrimRow kTrims[] = {{"EightRestsStay", 8, 37376 + 510},
                              {"OfNineTheFirstFourGo", 9, 37376 + 4 * 512 + 510}};
class TrimTest : public ::testing::TestWithParam<TrimRow> {};
TEST_P(TrimTest, RestsOfAreasAreKept) {
  World world(image_256m());
  world.make_directory(world.root, "d");
  for (int i = 0; i < 34 * GetParam().areas; ++i) {
    ASSERT_EQ(world.append(world.make_file(world.root, "f"), 15).size(), 1u);
  }
  EXPECT_EQ(world.append(world.make_file(world.root, "g"), 2),
            (Runs{{FsBlock{GetParam().want}, 2}}));
}
INSTANTIATE_TEST_SUITE_P(Rows, TrimTest, ::testing::ValuesIn(kTrims),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(BlockAllocator, TheFirstBlockOfAnUninitialisedGroupMakesItsBitmap) {
  World world(make_image("", "2G"));
  // Groups 2 to 15 hold nothing but what mke2fs counted.
  const GroupNo group{2};
  ASSERT_NE(world.volume.desc(group).flags() & GroupDesc::kBlockUninit, 0);
  const std::uint32_t before = world.volume.desc(group).free_blocks();
  EXPECT_EQ(world.bitmaps.free_after_init(group), before);
  Inode& d = world.make_directory(world.root, "d");
  const AllocationRequest request{
      .inode = d, .goal = world.geometry.first_block_of(group), .data = false};
  const KResult<Allocation> got = world.run(world.blocks.allocate(world.thread, request));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->start, world.geometry.first_block_of(group));
  const GroupDesc desc = world.volume.desc(group);
  EXPECT_EQ(desc.flags() & GroupDesc::kBlockUninit, 0);
  EXPECT_EQ(desc.free_blocks(), before - 1);
  EXPECT_TRUE(desc.checksum_ok());
  EXPECT_TRUE(desc.block_bitmap_checksum_ok(world.bitmaps.ready_block_bitmap(group).data.bytes()));
}

struct GoalRow {
  const char* name;
  const char* options;
  const char* size;
  bool delayed;
  std::uint32_t group;  // of the inode
  std::uint32_t pid;
  bool directory;
  std::uint64_t want;
  friend void PrintTo(const GoalRow& row, std::ostream* out) { *out << row.name; }
};
constexpr GoalRow kGoals[] = {
    {"AFileBeginsInTheSecondGroupOfItsFlexGroup", "", "1G", true, 5, 7, false, 32768},
    {"ADirectoryBeginsInTheFirst", "", "1G", true, 5, 7, true, 0},
    {"WithSmallFlexGroupsBothBeginInTheirOwn", "-G 2", "1G", true, 5, 7, false, 5UL * 32768},
    {"WithoutDelayedAllocationProcessesAreApart", "", "1G", false, 0, 19, false,
     32768 + 3UL * 2048},
};
class GoalTest : public ::testing::TestWithParam<GoalRow> {};
TEST_P(GoalTest, OfTheFirstBlock) {
  const GoalRow& row = GetParam();
  World world(make_image(row.options, row.size), {.delayed_allocation = row.delayed});
  Inode& inode = world.inode(Ino{100}, row.directory ? kModeDirectory : kModeRegular);
  inode.group = GroupNo{row.group};
  world.thread.pid = row.pid;
  EXPECT_EQ(world.blocks.inode_goal(world.thread, inode), FsBlock{row.want});
}
INSTANTIATE_TEST_SUITE_P(Rows, GoalTest, ::testing::ValuesIn(kGoals),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(BlockPlacement, SixteenGroupsAndMoreAreSearchedByLists) {
  // 4 GiB: the second directory of the root goes to the second flex group, its block beside the
  // first directory's, and a file's area into the first group that is in memory and large enough.
  World world(make_image("", "4G"));
  FsBlock first;
  FsBlock second;
  world.make_directory(world.root, "d0", &first);
  world.make_directory(world.root, "d1", &second);
  EXPECT_EQ(world.geometry.group_of(first).value(), 16u);
  EXPECT_EQ(second.value(), first.value() + 1);
}

// Whatever is asked for: no block is given twice, the counters agree with the bitmaps, and all is
// given back in the end.
class AllocatorPropertyTest : public ::testing::TestWithParam<std::uint32_t> {};
TEST_P(AllocatorPropertyTest, NoBlockIsGivenTwice) {
  static const std::array images{make_image("", "64M"), make_image("", "64M", 1024),
                                 make_image("-O ^flex_bg,^resize_inode", "300M"),
                                 make_image("-O ^metadata_csum,uninit_bg", "200M", 2048)};
  sim::Random random(GetParam());
  World world(images[GetParam() % images.size()]);
  std::set<std::uint64_t> used;
  std::vector<Inode*> files;
  std::vector<std::pair<Inode*, Allocation>> held;
  for (int step = 0; step < 400; ++step) {
    world.thread.cpu = static_cast<unsigned>(random.below(2));
    if (files.empty() || random.chance(1, 8)) files.push_back(&world.make_file(world.root, "f"));
    Inode& file = *files[random.below(files.size())];
    if (random.chance(1, 5) && !held.empty()) {
      const std::size_t which = random.below(held.size());
      const auto [owner, run] = held[which];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      world.close(*owner);
      owner->sectors += std::uint64_t{run.len} * (world.geometry.block_size / 512);
      ASSERT_TRUE(world.run(world.blocks.free(world.thread, *owner, run.start, run.len, false)));
      for (std::uint32_t i = 0; i < run.len; ++i) used.erase(run.start.value() + i);
    } else if (random.chance(1, 10)) {
      world.blocks.on_commit(world.journal.running);
      world.journal.running = world.journal.running.next();
    } else {
      file.writers = random.chance(3, 4) ? 1 : 0;
      const auto len = static_cast<std::uint32_t>(1 + random.below(random.chance(1, 3) ? 200 : 12));
      for (const Allocation& run : world.append(file, len)) {
        held.push_back({&file, run});
        for (std::uint32_t i = 0; i < run.len; ++i) {
          ASSERT_TRUE(used.insert(run.start.value() + i).second) << "seed " << GetParam();
        }
      }
    }
  }
  std::uint64_t free = 0;
  for (std::uint32_t n = 0; n < world.geometry.groups; ++n) {
    const GroupDesc desc = world.volume.desc(GroupNo{n});
    EXPECT_TRUE(desc.checksum_ok());
    free += desc.free_blocks();
    const KResult<Buffer*> bitmap = world.run(world.bitmaps.block_bitmap(GroupNo{n}));
    ASSERT_TRUE(bitmap);
    if (!world.bitmaps.block_uninit(GroupNo{n})) {
      EXPECT_TRUE(desc.block_bitmap_checksum_ok((*bitmap)->data.bytes()));
    }
    std::uint32_t clear = 0;
    for (std::uint32_t bit = 0; bit < world.geometry.blocks_per_group; ++bit) {
      if (!test_bit((*bitmap)->data.bytes(), bit)) ++clear;
    }
    EXPECT_EQ(clear, desc.free_blocks()) << "group " << n;
  }
  EXPECT_EQ(world.volume.free_blocks.sum(), free);
}
INSTANTIATE_TEST_SUITE_P(Seeds, AllocatorPropertyTest, ::testing::Range(1U, 13U));

}  // namespace
}  // namespace alloc_test
}  // namespace jbdlab::ext4
