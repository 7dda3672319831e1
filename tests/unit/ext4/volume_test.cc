#include "sim/ext4/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "base/crc32c.h"
#include "tests/unit/ext4/support_alloc.h"

namespace jbdlab::ext4::alloc_test {
namespace {

using ::testing::HasSubstr;

const sim::BlockStore& plain() {
  static const sim::BlockStore image = make_image("", "256M");
  return image;
}

std::vector<std::byte> super_of(const sim::BlockStore& image) {
  std::vector<std::byte> raw(1024);
  image.read_bytes(1024, raw);
  return raw;
}

void sign(MutableByteSpan raw) {
  set_le<std::uint32_t>(raw, 0x3FC, crc32c(~0U, ByteSpan{raw}.first(0x3FC)));
}

// ----- the superblock -----

TEST(Geometry, IsWhatMke2fsMade) {
  const Geometry g = geometry_of(plain());
  EXPECT_EQ(g.block_size, 4096u);
  EXPECT_EQ(g.blocks, 65536u);
  EXPECT_EQ(g.reserved_blocks, 3276u);
  EXPECT_EQ(g.blocks_per_group, 32768u);
  EXPECT_EQ(g.groups, 2u);
  EXPECT_EQ(g.inode_size, 256u);
  EXPECT_EQ(g.want_extra_isize, 32u);
  EXPECT_EQ(g.desc_size, 64u);
  EXPECT_EQ(g.first_inode, 11u);
  EXPECT_EQ(g.groups_per_flex, 16u);
  EXPECT_EQ(g.hash_version, 1u);
  EXPECT_FALSE(g.hash_unsigned);
  EXPECT_EQ(g.hash_seed[0], 0xFECAAD0Bu);
  EXPECT_EQ(g.csum_seed, crc32c(~0U, g.uuid));
}

struct MadeRow {
  const char* name;
  const char* options;
  const char* size;
  std::uint32_t block_size;
  std::uint32_t groups;
  std::uint32_t desc_size, inode_size, groups_per_flex;
  friend void PrintTo(const MadeRow& row, std::ostream* out) { *out << row.name; }
};
constexpr MadeRow kMade[] = {
    {"Blocks1K", "", "64M", 1024, 8, 64, 256, 16},
    {"Blocks2K", "", "256M", 2048, 8, 64, 256, 16},
    {"WithoutMetadataChecksums", "-O ^metadata_csum", "256M", 4096, 2, 64, 256, 16},
    {"DescriptorChecksums", "-O ^metadata_csum,uninit_bg", "256M", 4096, 2, 64, 256, 16},
    {"With32BitBlockNumbers", "-O ^64bit", "256M", 4096, 2, 32, 256, 16},
    {"With32BitBlockNumbersAndDescriptorChecksums", "-O ^64bit,^metadata_csum,uninit_bg", "256M",
     4096, 2, 32, 256, 16},
    {"WithoutFlexGroups", "-O ^flex_bg", "512M", 4096, 4, 64, 256, 1},
    {"WithoutResizeInode", "-O ^resize_inode", "256M", 4096, 2, 64, 256, 16},
    {"WithoutDirectoryIndex", "-O ^dir_index", "256M", 4096, 2, 64, 256, 16},
    {"SmallInodes", "-I 128", "256M", 4096, 2, 64, 128, 16},
    {"FastCommit", "-O fast_commit", "256M", 4096, 2, 64, 256, 16},
    {"ChecksumSeed", "-O metadata_csum_seed", "256M", 4096, 2, 64, 256, 16},
    {"CopiesInEveryGroup", "-O ^sparse_super,^resize_inode", "1G", 4096, 8, 64, 256, 16},
    {"CopiesInTwoGroups", "-O sparse_super2", "2G", 4096, 16, 64, 256, 16},
};
class MadeTest : public ::testing::TestWithParam<MadeRow> {};
TEST_P(MadeTest, IsMounted) {
  const MadeRow& row = GetParam();
  const sim::BlockStore image = make_image(row.options, row.size, row.block_size);
  World world(image);
  const Geometry& g = world.geometry;
  EXPECT_EQ(g.groups, row.groups);
  EXPECT_EQ(g.desc_size, row.desc_size);
  EXPECT_EQ(g.inode_size, row.inode_size);
  EXPECT_EQ(g.groups_per_flex, row.groups_per_flex);
  // The superblock of a new file system counts what the descriptors count.
  const std::vector<std::byte> super = super_of(image);
  EXPECT_EQ(world.volume.free_blocks.sum(), get_le<std::uint32_t>(super, 0xC));
  EXPECT_EQ(world.volume.free_inodes.sum(), get_le<std::uint32_t>(super, 0x10));
  EXPECT_EQ(world.volume.directories.sum(), 2u);
  for (std::uint32_t n = 0; n < g.groups; ++n) {
    const GroupNo group{n};
    GroupDesc desc = world.volume.desc(group);
    EXPECT_TRUE(desc.checksum_ok()) << n;
    // Our checksums are those of mke2fs, bit for bit.
    const BlockRef before = desc.buffer().data;
    const KResult<Buffer*> blocks = world.run(world.bitmaps.block_bitmap(group));
    const KResult<Buffer*> inodes = world.run(world.bitmaps.inode_bitmap(group));
    ASSERT_TRUE(blocks && inodes) << n;
    if (!world.bitmaps.block_uninit(group)) {
      desc.set_block_bitmap_checksum((*blocks)->data.bytes());
    }
    if (!world.bitmaps.inode_uninit(group)) {
      desc.set_inode_bitmap_checksum((*inodes)->data.bytes());
    }
    desc.update_checksum();
    EXPECT_TRUE(std::ranges::equal(before.bytes(), desc.buffer().data.bytes())) << n;
    // What we would make of an empty group is what mke2fs counted.
    if (world.bitmaps.block_uninit(group)) {
      EXPECT_EQ(world.bitmaps.free_after_init(group), desc.free_blocks()) << n;
    }
    std::uint32_t free = 0;
    for (std::uint32_t bit = 0; bit < g.blocks_per_group; ++bit) {
      if (!test_bit((*blocks)->data.bytes(), bit)) ++free;
    }
    EXPECT_EQ(free, desc.free_blocks()) << n;
  }
  world.volume.update_super_checksum();
  EXPECT_TRUE(std::ranges::equal(world.volume.super(), super));
}
INSTANTIATE_TEST_SUITE_P(Rows, MadeTest, ::testing::ValuesIn(kMade),
                         [](const auto& each) { return std::string(each.param.name); });

struct SparseRow {
  std::uint32_t group;
  bool want;
};
TEST(Geometry, CopiesOfTheSuperblockAreInPowersOf3And5And7) {
  Geometry g;
  g.ro_compat = kRoCompatSparseSuper;
  for (const SparseRow& row : {SparseRow{0, true},
                               {1, true},
                               {2, false},
                               {3, true},
                               {4, false},
                               {5, true},
                               {7, true},
                               {9, true},
                               {15, false},
                               {21, false},
                               {25, true},
                               {27, true},
                               {49, true},
                               {125, true},
                               {2187, true},
                               {2189, false},
                               {4'294'967'295U, false}}) {
    EXPECT_EQ(g.has_super(GroupNo{row.group}), row.want) << row.group;
  }
}

struct RefusedRow {
  const char* name;
  const char* options;
  const char* feature;
  friend void PrintTo(const RefusedRow& row, std::ostream* out) { *out << row.name; }
};
constexpr RefusedRow kRefused[] = {
    {"Bigalloc", "-O bigalloc", "bigalloc"},
    {"InlineData", "-O inline_data", "inline_data"},
    {"MetaBg", "-O meta_bg,^resize_inode", "meta_bg"},
    {"Encrypt", "-O encrypt", "encrypt"},
    {"Casefold", "-O casefold", "casefold"},
    {"Quota", "-O quota", "quota"},
    {"Project", "-O quota,project", "project"},
    {"Verity", "-O verity", "verity"},
    {"OrphanFile", "-O orphan_file", "orphan_file"},
    {"LargeDirectories", "-O large_dir", "large_dir"},
    {"EaInode", "-O ea_inode", "ea_inode"},
    {"Mmp", "-O mmp", "mmp"},
    {"BlockMapped", "-O ^extent,^64bit", "without the feature extent"},
};
class RefusedTest : public ::testing::TestWithParam<RefusedRow> {};
TEST_P(RefusedTest, NamesTheFeature) {
  const sim::BlockStore image = make_image(GetParam().options, "64M");
  const Result<Geometry> parsed = Geometry::parse(super_of(image));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Errc::unsupported);
  EXPECT_THAT(parsed.error().what, HasSubstr(GetParam().feature));
}
INSTANTIATE_TEST_SUITE_P(Rows, RefusedTest, ::testing::ValuesIn(kRefused),
                         [](const auto& each) { return std::string(each.param.name); });

struct DamageRow {
  const char* name;
  std::size_t offset;  // in the superblock
  std::uint32_t value;
  int bytes;
  bool signed_anew;
  Errc want;
  const char* what;
  friend void PrintTo(const DamageRow& row, std::ostream* out) { *out << row.name; }
};
constexpr DamageRow kDamages[] = {
    {"AnotherMagic", 0x38, 0xEF54, 2, true, Errc::bad_magic, "0xef54"},
    {"AnOldRevision", 0x4C, 0, 4, true, Errc::invalid, "revision is 0"},
    {"AChangeThatIsNotSigned", 0x10, 1, 4, false, Errc::checksum, "checksum"},
    {"AnUnknownChecksum", 0x175, 2, 1, true, Errc::invalid, "checksum type is 2"},
    {"AnUnknownFeature", 0x60, 0x800002C2, 4, true, Errc::unsupported, "FEATURE_I31"},
    {"AHugeBlockSize", 0x18, 6, 4, true, Errc::invalid, "block size"},
    {"ABlockSizeBeyondAnyShift", 0x18, 0xFFFFFFFF, 4, true, Errc::invalid, "block size"},
    {"ClustersLargerThanBlocks", 0x1C, 4, 4, true, Errc::invalid, "cluster size"},
    {"FirstDataBlockOne", 0x14, 1, 4, true, Errc::invalid, "first data block is 1"},
    {"NoBlocks", 0x4, 0, 4, true, Errc::invalid, "block count is 0"},
    {"MoreInodesThanGroupsHold", 0x0, 65537, 4, true, Errc::invalid, "inode count is 65537"},
    {"NoBlocksPerGroup", 0x20, 0, 4, true, Errc::invalid, "blocks per group is 0"},
    {"MoreBlocksPerGroupThanBits", 0x20, 65536, 4, true, Errc::invalid, "blocks per group"},
    {"NoInodesPerGroup", 0x28, 0, 4, true, Errc::invalid, "inodes per group is 0"},
    {"InodesPerGroupOffABlock", 0x28, 8200, 4, true, Errc::invalid, "inodes per group is 8200"},
    {"ManyInodesPerGroup", 0x28, 0xFFFFFFF0, 4, true, Errc::invalid, "inodes per group"},
    {"InodeSizeZero", 0x58, 0, 2, true, Errc::invalid, "inode size is 0"},
    {"InodeSizeOdd", 0x58, 200, 2, true, Errc::invalid, "inode size is 200"},
    {"InodeLargerThanABlock", 0x58, 8192, 2, true, Errc::invalid, "inode size is 8192"},
    {"DescriptorSizeZero", 0xFE, 0, 2, true, Errc::invalid, "descriptor size is 0"},
    {"DescriptorSizeOdd", 0xFE, 96, 2, true, Errc::invalid, "descriptor size is 96"},
    {"FirstInodeZero", 0x54, 0, 4, true, Errc::invalid, "first inode is 0"},
    {"ExtraInodeSizeBeyondTheInode", 0x15E, 200, 2, true, Errc::invalid, "extra inode size"},
    {"FlexGroupsBeyondAnyShift", 0x174, 40, 1, true, Errc::invalid, "flex group"},
    {"MoreBlocksReservedThanThereAre", 0x8, 70000, 4, true, Errc::invalid, "reserved block count"},
    {"DescriptorBlocksThatFillAGroup", 0xCE, 40000, 2, true, Errc::invalid, "descriptor blocks"},
};
class DamageTest : public ::testing::TestWithParam<DamageRow> {};
TEST_P(DamageTest, IsNamed) {
  const DamageRow& row = GetParam();
  std::vector<std::byte> raw = super_of(plain());
  if (row.bytes == 1) set_le(raw, row.offset, static_cast<std::uint8_t>(row.value));
  if (row.bytes == 2) set_le(raw, row.offset, static_cast<std::uint16_t>(row.value));
  if (row.bytes == 4) set_le(raw, row.offset, row.value);
  if (row.offset == 0x20) set_le(raw, 0x24, row.value);  // clusters are blocks
  if (row.signed_anew) sign(raw);
  const Result<Geometry> parsed = Geometry::parse(raw);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, row.want) << parsed.error().what;
  EXPECT_THAT(parsed.error().what, HasSubstr(row.what));
}
INSTANTIATE_TEST_SUITE_P(Rows, DamageTest, ::testing::ValuesIn(kDamages),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Geometry, RefusesAShortSuperblock) {
  const std::vector<std::byte> raw = super_of(plain());
  const Result<Geometry> parsed = Geometry::parse(ByteSpan{raw}.first(1023));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Errc::truncated);
}

// ----- descriptors and bitmaps -----

struct DescRow {
  const char* name;
  const char* options;
  std::size_t offset;  // in the descriptor of group 1, which lies in block 1
  std::uint32_t value;
  friend void PrintTo(const DescRow& row, std::ostream* out) { *out << row.name; }
};
constexpr DescRow kDescs[] = {
    {"ABitmapInTheSuperblock", "-O ^metadata_csum", 0x0, 0},
    {"ABitmapInTheDescriptors", "-O ^metadata_csum", 0x0, 1},
    {"ABitmapBehindTheEnd", "-O ^metadata_csum", 0x4, 65536},
    {"AnInodeTableThatRunsOverTheEnd", "-O ^metadata_csum", 0x8, 65535},
    {"ABitmapInAnotherGroup", "-O ^metadata_csum,^flex_bg", 0x0, 1000},
    {"MoreFreeBlocksThanBlocks", "-O ^metadata_csum", 0xC, 0x0000FFFF},
    {"AWrongChecksum", "", 0xC, 0x00001000},
    {"AWrongChecksumOfUninitBg", "-O ^metadata_csum,uninit_bg", 0xC, 0x00001000},
};
class DescTest : public ::testing::TestWithParam<DescRow> {};
TEST_P(DescTest, StopsTheMount) {
  const DescRow& row = GetParam();
  sim::BlockStore image = make_image(row.options, "256M");
  const Geometry g = geometry_of(image);
  std::array<std::byte, 4> bytes{};
  set_le(bytes, 0, row.value);
  image.write_bytes(4096 + g.desc_size + row.offset, bytes);
  sim::Engine engine;
  sim::Trace trace(engine);
  const auto device = *sim::make_device("ram", engine, std::move(image), {});
  sim::BlockLayer layer(engine, trace, *device);
  BufferCache buffers(engine, layer, g.block_size, g.blocks);
  Volume volume(g, buffers);
  bool done = false;
  KResult<void> loaded;
  engine.spawn([](Volume& v, KResult<void>& out, bool& flag) -> Task<> {
    out = co_await v.load();
    flag = true;
  }(volume, loaded, done));
  ASSERT_TRUE(engine.run_until(done));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error(), Errno::euclean);
}
INSTANTIATE_TEST_SUITE_P(Rows, DescTest, ::testing::ValuesIn(kDescs),
                         [](const auto& each) { return std::string(each.param.name); });

struct BitmapRow {
  const char* name;
  const char* options;
  std::uint32_t bit;  // of group 0's block bitmap, cleared
  friend void PrintTo(const BitmapRow& row, std::ostream* out) { *out << row.name; }
};
constexpr BitmapRow kBitmaps[] = {
    {"AWrongChecksum", "", 20'000},
    {"AFreeSuperblock", "-O ^metadata_csum", 0},
    {"AFreeInodeTable", "-O ^metadata_csum", 100},
    {"AFreeInodeTableOfAnotherGroup", "-O ^metadata_csum", 3000},
    {"AFreeCountThatDoesNotMatch", "-O ^metadata_csum", 4130},
};
class BitmapTest : public ::testing::TestWithParam<BitmapRow> {};
TEST_P(BitmapTest, IsRefused) {
  const BitmapRow& row = GetParam();
  sim::BlockStore image = make_image(row.options, "256M");
  std::uint64_t where = 0;
  {
    World world(image);
    where = world.volume.desc(GroupNo{0}).block_bitmap().value();
  }
  std::array<std::byte, 1> byte{};
  image.read_bytes(where * 4096 + row.bit / 8, byte);
  byte[0] ^= std::byte{1} << (row.bit % 8);
  image.write_bytes(where * 4096 + row.bit / 8, byte);
  World world(image);
  Inode& d = world.new_inode(world.root, kModeDirectory, "d");
  const AllocationRequest request{.inode = d, .goal = FsBlock{0}, .data = false};
  const KResult<Allocation> got = world.run(world.blocks.allocate(world.thread, request));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error(), Errno::euclean);
}
INSTANTIATE_TEST_SUITE_P(Rows, BitmapTest, ::testing::ValuesIn(kBitmaps),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace jbdlab::ext4::alloc_test
