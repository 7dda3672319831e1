#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "sim/ext4/dir/htree.h"

namespace jbdlab::ext4 {
namespace {

constexpr DirFormat kFormat{
    .block_size = 1024, .inodes = 1000, .checksums = true, .file_types = true};
using Block = std::vector<std::byte>;

struct Limits {
  const char* test_name;
  std::uint32_t block_size;
  bool checksums;
  std::uint32_t root, node;
};
class IndexLimits : public ::testing::TestWithParam<Limits> {};
constexpr std::array kLimits{
    Limits{"of_4k", 4096, true, 507, 510},
    Limits{"of_4k_without_checksums", 4096, false, 508, 511},
    Limits{"of_2k", 2048, true, 251, 254},
    Limits{"of_1k", 1024, true, 123, 126},
};
TEST_P(IndexLimits, AreWhatTheHeaderAndTheTailLeave) {
  const auto& [name, block_size, checksums, root, node] = GetParam();
  const DirFormat format{
      .block_size = block_size, .inodes = 1, .checksums = checksums, .file_types = true};
  EXPECT_EQ(IndexTable::of_root(format).limit(), root);
  EXPECT_EQ(IndexTable::of_node(format).limit(), node);
}
INSTANTIATE_TEST_SUITE_P(DirIndex, IndexLimits, ::testing::ValuesIn(kLimits),
                         [](const auto& row) { return std::string(row.param.test_name); });

Block new_node() {
  Block block(kFormat.block_size);
  init_index_node(kFormat, block);
  const IndexTable table = IndexTable::of_node(kFormat);
  table.set_limit(block);
  table.set_count(block, 1);
  table.set_target(block, 0, LogicalBlock{7});
  return block;
}

TEST(DirIndex, ATableServesEachHashFromTheLastEntryThatIsNotGreater) {
  Block block = new_node();
  const IndexTable table = IndexTable::of_node(kFormat);
  EXPECT_TRUE(looks_like_index_node(kFormat, block));
  ASSERT_TRUE(table.valid(block));
  table.insert_after(block, 0, 100, LogicalBlock{8});
  table.insert_after(block, 1, 300, LogicalBlock{9});
  table.insert_after(block, 1, 200, LogicalBlock{10});
  ASSERT_EQ(table.count(block), 4U);
  struct Row {
    std::uint32_t hash, target;
  };
  for (const Row& row : {Row{0, 7}, Row{99, 7}, Row{100, 8}, Row{199, 8}, Row{200, 10},
                         Row{299, 10}, Row{300, 9}, Row{0xffff'ffff, 9}}) {
    EXPECT_EQ(table.target(block, table.find(block, row.hash)), LogicalBlock{row.target})
        << row.hash;
  }
}

TEST(DirIndex, TheChecksumCoversTheEntriesInUse) {
  Block block = new_node();
  const IndexTable table = IndexTable::of_node(kFormat);
  table.insert_after(block, 0, 100, LogicalBlock{8});
  table.update_checksum(block, 0x77);
  EXPECT_TRUE(table.checksum_ok(block, 0x77));
  EXPECT_FALSE(table.checksum_ok(block, 0x78));
  // Header and two entries, then the tail with zero for the checksum: 8 + 2 * 8, then 8 bytes.
  Block covered(block.begin(), block.begin() + 24);
  covered.resize(32);
  EXPECT_EQ(get_le<std::uint32_t>(block, 1020), crc32c(0x77, covered));
  block[24] ^= std::byte{1};  // behind the last entry
  EXPECT_TRUE(table.checksum_ok(block, 0x77));
  block[12] ^= std::byte{1};
  EXPECT_FALSE(table.checksum_ok(block, 0x77));
}

TEST(DirIndex, TheRootIsReadAsItIsWritten) {
  for (const std::uint32_t levels : {0U, 1U, 2U}) {
    for (const DirHashVersion version :
         {DirHashVersion::legacy, DirHashVersion::half_md4, DirHashVersion::tea}) {
      Block block(kFormat.block_size), leaf(kFormat.block_size);
      init_dot_entries(kFormat, block, Ino{12}, Ino{2});
      insert_dir_entry(kFormat, block, 12,
                       {.ino = Ino{13}, .type = FileType::regular, .name = "a"});
      ASSERT_TRUE(convert_to_index(kFormat, version, block, leaf));
      build_index_root_info({.hash_version = version, .levels = levels}, block);
      const Result<IndexRootInfo> info = parse_index_root(kFormat, block);
      ASSERT_TRUE(info.has_value()) << info.error().what;
      EXPECT_EQ(info->hash_version, version);
      EXPECT_EQ(info->levels, levels);
      const IndexTable table = IndexTable::of_root(kFormat);
      EXPECT_TRUE(table.valid(block));
      EXPECT_EQ(table.target(block, table.find(block, 0x8000'0000)), LogicalBlock{1});
      EXPECT_TRUE(check_dir_block(kFormat, leaf).has_value());
      EXPECT_EQ(find_dir_entry(kFormat, leaf, "a"), 0U);
    }
  }
}

TEST(DirIndex, OnlyADirectoryWithItsTwoFirstEntriesIsConverted) {
  Block block(kFormat.block_size);
  init_empty_dir_block(kFormat, block);
  insert_dir_entry(kFormat, block, 0, {.ino = Ino{13}, .type = FileType::regular, .name = "a"});
  const Block before = block;
  Block leaf(kFormat.block_size);
  EXPECT_FALSE(convert_to_index(kFormat, DirHashVersion::half_md4, block, leaf));
  EXPECT_EQ(block, before);
  EXPECT_EQ(leaf, Block(kFormat.block_size));
}

constexpr DirHasher kHasher{};

TEST(DirIndex, ASplitSharesTheNamesByHash) {
  Block leaf(kFormat.block_size), fresh(kFormat.block_size);
  init_empty_dir_block(kFormat, leaf);
  std::set<std::string> names;
  for (std::uint32_t i = 0;; ++i) {
    const std::string name = fmt::format("name-{}", i);
    const auto slot = find_dir_slot(kFormat, leaf, name);
    if (!slot) break;
    insert_dir_entry(kFormat, leaf, *slot,
                     {.ino = Ino{100 + i}, .type = FileType::regular, .name = name});
    names.insert(name);
  }
  const auto split = split_leaf(kFormat, kHasher, leaf, fresh);
  ASSERT_TRUE(split.has_value());
  EXPECT_FALSE(split->continued);
  EXPECT_TRUE(check_dir_block(kFormat, leaf).has_value());
  EXPECT_TRUE(check_dir_block(kFormat, fresh).has_value());
  std::uint32_t low_bytes = 0;
  for (const std::string& name : names) {
    const bool high = kHasher(name).major >= split->hash;
    EXPECT_EQ(find_dir_entry(kFormat, leaf, name).has_value(), !high) << name;
    EXPECT_EQ(find_dir_entry(kFormat, fresh, name).has_value(), high) << name;
    if (!high) low_bytes += dir_entry_size(name.size());
  }
  EXPECT_NEAR(low_bytes, 506, 20) << "about half of the 1012 bytes";
  EXPECT_EQ(split->low_last + dir_entry_at(leaf, split->low_last).rec_len, 1012U);
  EXPECT_EQ(split->high_last + dir_entry_at(fresh, split->high_last).rec_len, 1012U);
}

TEST(DirIndex, ALeafWithOneNameIsNotSplit) {
  Block leaf(kFormat.block_size), fresh(kFormat.block_size);
  init_empty_dir_block(kFormat, leaf);
  insert_dir_entry(kFormat, leaf, 0, {.ino = Ino{13}, .type = FileType::regular, .name = "a"});
  const Block before = leaf;
  EXPECT_FALSE(split_leaf(kFormat, kHasher, leaf, fresh).has_value());
  EXPECT_EQ(leaf, before);
}

}  // namespace
}  // namespace jbdlab::ext4
