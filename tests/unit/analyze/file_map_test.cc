#include "analyze/file_map.h"

#include <algorithm>
#include <array>
#include <string>

#include "analyze/journal_source.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using test::make_image;
using test::TempDir;

// Blocks of inode 8 in file order, as debugfs lists them; 0 for a hole.
std::vector<std::uint64_t> blocks_of_debugfs(const std::filesystem::path& image, Ino ino,
                                             std::uint32_t count) {
  std::string commands;
  for (std::uint32_t i = 0; i < count; ++i) {
    commands += "bmap <" + std::to_string(ino.value()) + "> " + std::to_string(i) + "\n";
  }
  const std::filesystem::path script = image.parent_path() / "bmap.commands";
  test::write_file(script, commands);
  std::vector<std::uint64_t> blocks;
  for (const std::string& line :
       test::lines_of(test::must_run({"debugfs", "-f", script.string(), image.string()}))) {
    if (!line.empty() && std::isdigit(static_cast<unsigned char>(line[0])) != 0) {
      blocks.push_back(std::stoull(line));
    }
  }
  return blocks;
}

std::vector<std::uint64_t> blocks_of(const FileMap& map) {
  std::vector<std::uint64_t> blocks;
  for (std::uint32_t i = 0; i < map.block_count(); ++i) {
    const FileRun* run = map.find(LogicalBlock{i});
    blocks.push_back(run == nullptr ? 0 : run->fs_block.value() + (i - run->first.value()));
  }
  return blocks;
}

struct Layout {
  const char* name;
  const char* options;
  bool fragmented;  // the journal is made in what is left between files
};

class JournalMap : public testing::TestWithParam<Layout> {
 protected:
  // A file system whose free space is in pieces of two blocks, and then a journal.
  static void fragment(const std::filesystem::path& image) {
    const std::filesystem::path content = image.parent_path() / "content";
    test::write_file(content, std::string(2048, 'x'));
    std::string commands;
    for (int i = 0; i < 3000; ++i) {
      commands += "write " + content.string() + " f" + std::to_string(i) + "\n";
    }
    for (int i = 0; i < 3000; i += 2) commands += "rm f" + std::to_string(i) + "\n";
    test::debugfs(image, commands);
    test::must_run({"tune2fs", "-j", "-J", "size=1", image.string()});
  }
};

TEST_P(JournalMap, IsThatOfDebugfs) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), GetParam().options, 7168);
  if (GetParam().fragmented) fragment(path);
  const auto image = Image::open(test::open_or_fail(path));
  ASSERT_TRUE(image.has_value());
  const auto inode = (*image)->inode(Ino{8});
  ASSERT_TRUE(inode.has_value());
  const auto map = FileMap::of(**image, *inode);
  ASSERT_TRUE(map.has_value()) << map.error().what;
  EXPECT_EQ(map->mapped_count(), 1024U);
  EXPECT_EQ(map->runs().size() > 200, GetParam().fragmented) << map->runs().size();
  EXPECT_EQ(blocks_of(*map), blocks_of_debugfs(path, Ino{8}, map->block_count()));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, JournalMap,
    testing::Values(Layout{"extents", "-t ext4 -b 1024 -J size=1 -N 4096", false},
                    Layout{"block_map", "-t ext3 -b 1024 -J size=1 -N 4096", false},
                    Layout{"fragmented_extents", "-t ext4 -b 1024 -O ^has_journal -N 4096", true},
                    Layout{"fragmented_block_map", "-t ext2 -b 1024 -N 4096", true}),
    [](const auto& row) { return row.param.name; });

// Damage in the map of an inode, in memory.
class DamagedMap : public testing::Test {
 protected:
  static constexpr std::uint32_t kBlock = 1024;

  void SetUp() override {
    NEED_E2FSPROGS();
    const TempDir dir;
    const auto path = make_image(dir.path(), "-t ext4 -b 1024 -J size=1", 8192);
    image_ = Image::open(test::open_or_fail(path)).value();
    const auto inode = image_->inode(Ino{8});
    std::copy_n(inode->map().begin(), 60, map_.begin());
  }
  Result<FileMap> walk(std::uint64_t size = 1024 * 1024) {
    return FileMap::of(*image_, Ext4Inode::with_map(size, map_));
  }

  std::unique_ptr<Image> image_;
  std::array<std::byte, 60> map_{};
};

TEST_F(DamagedMap, IsSoundBeforeTheDamage) {
  ASSERT_TRUE(walk().has_value());
  EXPECT_EQ(walk()->mapped_count(), 1024U);
}

TEST_F(DamagedMap, OfMoreEntriesThanRoomIsRefused) {
  set_le<std::uint16_t>(map_, 2, 5);
  EXPECT_EQ(walk().error().code, Errc::invalid);
}

TEST_F(DamagedMap, OfTooGreatADepthIsRefused) {
  set_le<std::uint16_t>(map_, 6, 6);
  EXPECT_EQ(walk().error().code, Errc::invalid);
}

TEST_F(DamagedMap, ThatLeadsOutOfTheFileSystemIsRefused) {
  set_le<std::uint16_t>(map_, 12 + 6, 0xFFFF);
  EXPECT_EQ(walk().error().code, Errc::invalid);
}

TEST_F(DamagedMap, WhoseRunsOverlapIsRefused) {
  set_le<std::uint16_t>(map_, 2, 2);
  std::copy_n(map_.begin() + 12, 12, map_.begin() + 24);
  EXPECT_EQ(walk().error().code, Errc::invalid);
}

TEST_F(DamagedMap, WhoseChildIsNoNodeIsRefused) {
  set_le<std::uint16_t>(map_, 6, 1);
  set_le<std::uint32_t>(map_, 12 + 4, 1);  // the superblock
  set_le<std::uint16_t>(map_, 12 + 8, 0);
  EXPECT_EQ(walk().error().code, Errc::bad_magic);
}

TEST_F(DamagedMap, KeepsToTheSizeOfTheFile) {
  EXPECT_EQ(walk(10 * kBlock)->mapped_count(), 10U);
  EXPECT_EQ(walk(10 * kBlock + 1)->block_count(), 11U);
  EXPECT_EQ(walk(~std::uint64_t{0})->block_count(), 0xFFFF'FFFFU);
}

// A block map in which every pointer leads to one and the same block goes on for ever; the walk
// does not.
TEST_F(DamagedMap, ThatIsItsOwnAncestorIsRefused) {
  std::array<std::byte, 60> loop{};
  const std::uint32_t pointers[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 66, 66, 66};
  for (std::size_t i = 0; i < 15; ++i) set_le<std::uint32_t>(loop, i * 4, pointers[i]);
  const auto walked = FileMap::of(*image_, Ext4Inode::with_map(~std::uint64_t{0}, loop));
  if (!walked) {
    EXPECT_EQ(walked.error().code, Errc::invalid);
  } else {
    EXPECT_LE(walked->runs().size(), FileMap::kRunsMax);
  }
}

TEST(RunBlockSource, ReadsEveryBlockWhateverTheRuns) {
  constexpr std::uint32_t kSize = 1024;
  std::vector<std::byte> bytes(kSize * 64);
  for (std::uint32_t i = 0; i < 64; ++i) set_le<std::uint32_t>(bytes, i * kSize, i);
  MemorySource volume{bytes};
  RunBlockSource source{volume,
                        kSize,
                        20,
                        {{LogicalBlock{0}, FsBlock{30}, 4},
                         {LogicalBlock{4}, FsBlock{10}, 5},
                         {LogicalBlock{12}, FsBlock{60}, 8}}};  // the last four are not there
  const std::array<int, 20> want{30, 31, 32, 33, 10, 11, 12, 13, 14, -1,
                                 -1, -1, 60, 61, 62, 63, -2, -2, -2, -2};
  for (const bool backwards : {false, true}) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      const std::uint32_t at = backwards ? 19 - i : i;
      const auto block = source.read(LogBlock{at});
      if (want[at] >= 0) {
        ASSERT_TRUE(block.has_value()) << at << ": " << block.error().what;
        EXPECT_EQ(get_le<std::uint32_t>(*block, 0), static_cast<std::uint32_t>(want[at])) << at;
        EXPECT_EQ(block->size(), kSize);
      } else {
        ASSERT_FALSE(block.has_value()) << at;
        EXPECT_EQ(block.error().code, want[at] == -1 ? Errc::not_found : Errc::truncated) << at;
      }
    }
  }
  EXPECT_EQ(source.read(LogBlock{20}).error().code, Errc::truncated);
}

}  // namespace
}  // namespace jbdlab::analyze
