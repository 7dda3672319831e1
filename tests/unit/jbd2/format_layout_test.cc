// Every record in every layout: what is built is parsed again; limits are the kernel's.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "jbd2/format/commit.h"
#include "jbd2/format/csum.h"
#include "jbd2/format/descriptor.h"
#include "jbd2/format/escape.h"
#include "jbd2/format/revoke.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

struct Row {
  const char* name;
  std::uint32_t block_size;
  ChecksumMode checksums;
  bool is_64bit;
  std::uint32_t tag_size;
  std::uint32_t tags;     // in one descriptor
  std::uint32_t revokes;  // in one revoke block
};
// Numbers of journal-format.md, sections 5.1 and 5.3.
constexpr Row kRows[] = {
    {"v3_64bit_1k", 1024, ChecksumMode::v3, true, 16, 61, 125},
    {"v3_64bit_2k", 2048, ChecksumMode::v3, true, 16, 125, 253},
    {"v3_64bit_4k", 4096, ChecksumMode::v3, true, 16, 253, 509},
    {"v3_32bit_4k", 4096, ChecksumMode::v3, false, 16, 253, 1019},
    {"v2_64bit_1k", 1024, ChecksumMode::v2, true, 14, 69, 125},
    {"v2_64bit_2k", 2048, ChecksumMode::v2, true, 14, 142, 253},
    {"v2_64bit_4k", 4096, ChecksumMode::v2, true, 14, 289, 509},
    {"v2_32bit_4k", 4096, ChecksumMode::v2, false, 10, 404, 1019},
    {"v1_64bit_4k", 4096, ChecksumMode::v1, true, 12, 337, 510},
    {"none_64bit_1k", 1024, ChecksumMode::none, true, 12, 81, 126},
    {"none_64bit_2k", 2048, ChecksumMode::none, true, 12, 167, 254},
    {"none_64bit_4k", 4096, ChecksumMode::none, true, 12, 337, 510},
    {"none_32bit_1k", 1024, ChecksumMode::none, false, 8, 122, 252},
    {"none_32bit_2k", 2048, ChecksumMode::none, false, 8, 250, 508},
    {"none_32bit_4k", 4096, ChecksumMode::none, false, 8, 506, 1020},
    {"v3_64bit_64k", 65536, ChecksumMode::v3, true, 16, 4093, 8189},
};

class Layout : public testing::TestWithParam<Row> {
 protected:
  LogFormat format() const {
    return LogFormat::make(GetParam().block_size, GetParam().checksums, GetParam().is_64bit,
                           sample_uuid());
  }
  // Block numbers that use every byte that the layout has for them.
  FsBlock fs_block(std::uint32_t i) const {
    const std::uint64_t low = 0xF0E0'D000U + i;
    return FsBlock{GetParam().is_64bit ? low | (std::uint64_t{0xABCD} << 32) : low};
  }
};

TEST_P(Layout, HasTheKernelsSizes) {
  EXPECT_EQ(format().tag.size, GetParam().tag_size);
  EXPECT_EQ(DescriptorBuilder::capacity(format()), GetParam().tags);
  EXPECT_EQ(RevokeBuilder::capacity(format()), GetParam().revokes);
}

TEST_P(Layout, FullDescriptorIsParsedAgain) {
  const LogFormat f = format();
  std::vector<std::byte> block(f.block_size, std::byte{0x5A});
  DescriptorBuilder builder(f, Tid{0xFFFF'FFFF}, block);
  std::vector<Tag> want;
  while (!builder.full()) {
    const std::uint32_t i = builder.count();
    const bool escaped = i % 3 == 1;
    const std::uint32_t checksum = 0xDEAD'0000U + i;
    builder.add(fs_block(i), escaped, checksum);
    Tag tag{.fs_block = fs_block(i), .flags = escaped ? tag_flag::kEscape : 0};
    if (i != 0) tag.flags |= tag_flag::kSameUuid;
    if (GetParam().checksums == ChecksumMode::v3) tag.checksum = checksum;
    if (GetParam().checksums == ChecksumMode::v2) tag.checksum = checksum & 0xFFFF;
    want.push_back(tag);
  }
  want.back().flags |= tag_flag::kLastTag;
  builder.finish();
  EXPECT_EQ(builder.count(), GetParam().tags);
  std::vector<Tag> tags(7);
  ASSERT_TRUE(parse_descriptor(f, block, tags));
  EXPECT_EQ(tags, want);
  EXPECT_EQ(BlockHeader::parse(block), (BlockHeader{BlockType::descriptor, Tid{0xFFFF'FFFF}}));
  if (f.has_block_checksums()) {
    EXPECT_TRUE(tail_checksum_ok(f.seed, block));
  }
}

TEST_P(Layout, DescriptorWithoutLastTagEndsWithItsSpace) {
  const LogFormat f = format();
  std::vector<std::byte> block(f.block_size);
  BlockHeader{BlockType::descriptor, Tid{1}}.build(block);
  // All flags zero: a uuid follows each tag.
  std::vector<Tag> tags;
  ASSERT_TRUE(parse_descriptor(f, block, tags));
  const std::size_t step = f.tag.size + 16U;
  const std::size_t space = f.block_size - 12 - f.tail_size();
  EXPECT_EQ(tags.size(), (space - f.tag.size) / step + 1);
}

TEST_P(Layout, FullRevokeBlockIsParsedAgain) {
  const LogFormat f = format();
  std::vector<std::byte> block(f.block_size, std::byte{0x5A});
  RevokeBuilder builder(f, Tid{9}, block);
  std::vector<FsBlock> want;
  while (!builder.full()) {
    want.push_back(fs_block(builder.count()));
    builder.add(want.back());
  }
  builder.finish();
  EXPECT_EQ(builder.count(), GetParam().revokes);
  std::vector<FsBlock> blocks;
  ASSERT_TRUE(parse_revoke(f, block, blocks));
  EXPECT_EQ(blocks, want);
  if (f.has_block_checksums()) {
    EXPECT_TRUE(tail_checksum_ok(f.seed, block));
  }
}

TEST_P(Layout, RevokeCountIsHostile) {
  const LogFormat f = format();
  std::vector<std::byte> block(f.block_size);
  RevokeBuilder builder(f, Tid{9}, block);
  builder.add(FsBlock{1});
  builder.finish();
  std::vector<FsBlock> blocks;
  for (const std::uint32_t used : {0U, 15U, f.block_size - f.tail_size() + 1, 0xFFFF'FFF0U}) {
    set_be<std::uint32_t>(block, 12, used);
    const auto parsed = parse_revoke(f, block, blocks);
    ASSERT_FALSE(parsed) << used;
    EXPECT_EQ(parsed.error().code, Errc::invalid);
    EXPECT_TRUE(blocks.empty());
  }
  set_be<std::uint32_t>(block, 12, 16);
  EXPECT_TRUE(parse_revoke(f, block, blocks));
  EXPECT_TRUE(blocks.empty());
  set_be<std::uint32_t>(block, 12, 16 + f.revoke_record_size() + 1);  // a part of a record
  EXPECT_TRUE(parse_revoke(f, block, blocks));
  EXPECT_EQ(blocks, std::vector<FsBlock>{FsBlock{1}});
}

TEST_P(Layout, CommitIsParsedAgain) {
  const LogFormat f = format();
  std::vector<std::byte> block(f.block_size, std::byte{0x5A});
  const CommitTime time{0x1'2345'6789, 999'999'999};
  build_commit(f, Tid{77}, time, 0xAABB'CCDD, block);
  const auto commit = CommitBlock::parse(block);
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->tid(), Tid{77});
  EXPECT_EQ(commit->time(), time);
  const bool v1 = f.checksums == ChecksumMode::v1;
  EXPECT_EQ(commit->checksum_type(), v1 ? 1 : 0);
  EXPECT_EQ(commit->checksum_size(), v1 ? 4 : 0);
  if (v1) {
    EXPECT_EQ(commit->checksum(), 0xAABB'CCDDU);
  }
  if (f.has_block_checksums()) {
    EXPECT_EQ(commit->checksum(), commit_checksum(f.seed, block));
  }
  if (f.checksums == ChecksumMode::none) {
    EXPECT_EQ(commit->checksum(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Layout, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(TagChecksum, IsComparedAsFarAsTheTagHoldsIt) {
  const Tag tag{FsBlock{1}, 0, 0x1234};
  EXPECT_TRUE(tag_checksum_matches(TagLayout::of(ChecksumMode::v2, true), tag, 0xABCD'1234));
  EXPECT_FALSE(tag_checksum_matches(TagLayout::of(ChecksumMode::v2, true), tag, 0xABCD'1235));
  EXPECT_FALSE(tag_checksum_matches(TagLayout::of(ChecksumMode::v3, true), tag, 0xABCD'1234));
  EXPECT_TRUE(tag_checksum_matches(TagLayout::of(ChecksumMode::v3, true), tag, 0x1234));
  EXPECT_TRUE(tag_checksum_matches(TagLayout::of(ChecksumMode::none, true), tag, 99));
}

TEST(TagChecksum, CoversTheTid) {
  const std::vector<std::byte> data(1024, std::byte{7});
  EXPECT_NE(data_checksum(1, Tid{1}, data), data_checksum(1, Tid{2}, data));
}

// V3 without 64 bit: the high word is there and means nothing.
TEST(Descriptor, HighWordIsIgnoredWithout64Bit) {
  const LogFormat wide = LogFormat::make(1024, ChecksumMode::v3, true, sample_uuid());
  const LogFormat narrow = LogFormat::make(1024, ChecksumMode::v3, false, sample_uuid());
  std::vector<std::byte> block(1024);
  DescriptorBuilder builder(wide, Tid{1}, block);
  builder.add(FsBlock{0x5'0000'0001}, false, 0);
  builder.finish();
  std::vector<Tag> tags;
  ASSERT_TRUE(parse_descriptor(narrow, block, tags));
  EXPECT_EQ(tags.at(0).fs_block, FsBlock{1});
}

struct BadBlock {
  const char* name;
  std::uint32_t magic;
  std::uint32_t type;
  std::size_t size;
  Errc descriptor, revoke, commit;
};
constexpr BadBlock kBadBlocks[] = {
    {"wrong_magic", 0xC03B3999, 1, 1024, Errc::bad_magic, Errc::bad_magic, Errc::bad_magic},
    {"superblock", kMagic, 4, 1024, Errc::bad_magic, Errc::bad_magic, Errc::bad_magic},
    {"short", kMagic, 9, 59, Errc::truncated, Errc::truncated, Errc::truncated},
};
class Refusal : public testing::TestWithParam<BadBlock> {};

TEST_P(Refusal, NamesTheReason) {
  const LogFormat f = LogFormat::make(1024, ChecksumMode::v3, true, sample_uuid());
  std::vector<std::byte> block(GetParam().size);
  set_be(block, 0, GetParam().magic);
  set_be(block, 4, GetParam().type);
  std::vector<Tag> tags;
  std::vector<FsBlock> blocks;
  EXPECT_EQ(parse_descriptor(f, block, tags).error().code, GetParam().descriptor);
  EXPECT_EQ(parse_revoke(f, block, blocks).error().code, GetParam().revoke);
  EXPECT_EQ(CommitBlock::parse(block).error().code, GetParam().commit);
}
INSTANTIATE_TEST_SUITE_P(Rows, Refusal, testing::ValuesIn(kBadBlocks),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Escape, IsUndone) {
  std::vector<std::byte> block(1024, std::byte{9});
  EXPECT_FALSE(needs_escape(block));
  set_be(block, 0, kMagic);
  const auto original = block;
  ASSERT_TRUE(needs_escape(block));
  escape(block);
  EXPECT_EQ(get_be<std::uint32_t>(block, 0), 0U);
  EXPECT_FALSE(needs_escape(block));
  unescape(block);
  EXPECT_EQ(block, original);
}

TEST(CommitChecksum, TornVersionIgnoresWhatIsBehindTheHeader) {
  const LogFormat f = LogFormat::make(4096, ChecksumMode::v3, true, sample_uuid());
  std::vector<std::byte> block(4096);
  build_commit(f, Tid{5}, {100, 0}, 0, block);
  const std::uint32_t sum = commit_checksum(f.seed, block);
  block[2000] = std::byte{1};
  EXPECT_NE(commit_checksum(f.seed, block), sum);
  EXPECT_EQ(commit_checksum_torn(f.seed, block), sum);
  block[63] = std::byte{1};
  EXPECT_NE(commit_checksum_torn(f.seed, block), sum);
}

}  // namespace
}  // namespace jbdlab::jbd2
