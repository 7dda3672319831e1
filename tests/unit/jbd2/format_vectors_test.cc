// The vectors of journal-format.md: bytes that a kernel or debugfs wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/crc32c.h"
#include "jbd2/format/commit.h"
#include "jbd2/format/csum.h"
#include "jbd2/format/descriptor.h"
#include "jbd2/format/fast_commit.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

const LogFormat kSample = LogFormat::make(4096, ChecksumMode::v3, true, sample_uuid());

std::vector<std::byte> padded(std::string_view hex, std::size_t size = 4096) {
  std::vector<std::byte> block = from_hex(hex);
  block.resize(size);
  return block;
}

std::vector<std::byte> sample_descriptor() {
  std::vector<std::byte> block = padded(
      "c03b3998 00000001 00000002"
      "00000089 00000000 00000000 cb4f82bd 00000000000000000000000000000000"
      "00000001 00000002 00000000 d38d0fba"
      "00000091 00000002 00000000 c1bddb8c"
      "00001091 00000002 00000000 b491c471"
      "00000000 0000000a 00000000 ab61ef2c");
  set_be<std::uint32_t>(block, 4092, 0x8b4b7e2c);
  return block;
}

const Tag kSampleTags[] = {
    {FsBlock{137}, 0, 0xcb4f82bd},
    {FsBlock{1}, tag_flag::kSameUuid, 0xd38d0fba},
    {FsBlock{145}, tag_flag::kSameUuid, 0xc1bddb8c},
    {FsBlock{4241}, tag_flag::kSameUuid, 0xb491c471},
    {FsBlock{0}, tag_flag::kSameUuid | tag_flag::kLastTag, 0xab61ef2c},
};

TEST(Vectors, SeedOfTheSampleJournal) { EXPECT_EQ(kSample.seed, 0x83ccc3acU); }

TEST(Vectors, KernelDescriptorIsRead) {
  const auto block = sample_descriptor();
  std::vector<Tag> tags;
  ASSERT_TRUE(parse_descriptor(kSample, block, tags));
  EXPECT_TRUE(std::ranges::equal(tags, kSampleTags));
  EXPECT_TRUE(tail_checksum_ok(kSample.seed, block));
}

TEST(Vectors, KernelDescriptorIsBuilt) {
  std::vector<std::byte> block(4096, std::byte{0xFF});
  DescriptorBuilder builder(kSample, Tid{2}, block);
  for (const Tag& tag : kSampleTags) builder.add(tag.fs_block, false, tag.checksum);
  builder.finish();
  EXPECT_EQ(block, sample_descriptor());
}

constexpr CommitTime kSampleTime{0x6b0e3f76, 0x2c66f458};

std::vector<std::byte> sample_commit() {
  std::vector<std::byte> block = padded("c03b3998 00000002 00000002 00000000 dcb1a5cf");
  set_be<std::uint64_t>(block, 48, kSampleTime.seconds);
  set_be<std::uint32_t>(block, 56, kSampleTime.nanoseconds);
  return block;
}

TEST(Vectors, KernelCommitIsRead) {
  const auto block = sample_commit();
  const auto commit = CommitBlock::parse(block);
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->tid(), Tid{2});
  EXPECT_EQ(commit->time(), kSampleTime);
  EXPECT_EQ(commit->checksum(), commit_checksum(kSample.seed, block));
  EXPECT_EQ(commit->checksum(), commit_checksum_torn(kSample.seed, block));
}

TEST(Vectors, KernelCommitIsBuilt) {
  std::vector<std::byte> block(4096, std::byte{0xFF});
  build_commit(kSample, Tid{2}, kSampleTime, 0, block);
  EXPECT_EQ(block, sample_commit());
}

TEST(Vectors, DebugfsDescriptorOf32BitJournal) {
  const auto want = padded(
      "c03b3998 00000001 00000001 00000fa0 0000 0000 00000000000000000000000000000000"
      "00000fa1 0000 0002 00000fa2 0000 000a");
  const LogFormat format = LogFormat::make(4096, ChecksumMode::none, false, Uuid{});
  std::vector<std::byte> block(4096);
  DescriptorBuilder builder(format, Tid{1}, block);
  for (const std::uint64_t b : {0xfa0U, 0xfa1U, 0xfa2U}) builder.add(FsBlock{b}, false, 99);
  builder.finish();
  EXPECT_EQ(block, want);
  std::vector<Tag> tags;
  ASSERT_TRUE(parse_descriptor(format, want, tags));
  ASSERT_EQ(tags.size(), 3U);
  EXPECT_EQ(tags[2], (Tag{FsBlock{0xfa2}, tag_flag::kSameUuid | tag_flag::kLastTag, 0}));
}

TEST(Vectors, DebugfsCommitTimeIsUnderstood) {
  const CommitTime time{std::uint64_t{0x6b0e3f76} << 32, 7};
  EXPECT_EQ(time.since_epoch_ns(), 0x6b0e3f76ULL * 1'000'000'000 + 7);
  EXPECT_EQ((CommitTime{0x6b0e3f76, 7}).since_epoch_ns(), 0x6b0e3f76ULL * 1'000'000'000 + 7);
  EXPECT_EQ((CommitTime{~0ULL, 7}).since_epoch_ns(), ~0ULL);
}

// The first fast commit of tid 3: HEAD, ADD_RANGE, INODE, TAIL.
std::vector<std::byte> sample_fast_commit() {
  return padded(
      "090008000000000003000000 010010000c0000000000000001000000008200000600a4000c000000ed81000000"
      "100000763f0e6b763f0e6b"
      "763f0e6b00000000000001000800000000000800020000000af3010004000000000000000000000001000000008"
      "20000000000000000000000"
      "000000000000000000000000000000000000000000000000000000aa01fc0d0000000000000000000000000000"
      "00000000000033f300002000"
      "3e57603d78b4603d78b460d19bb1763f0e6b60d19bb100000000000000000800340f030000009ad7555a");
}

TEST(Vectors, KernelFastCommitIsRead) {
  const auto block = sample_fast_commit();
  const auto head = parse_fc_tlv(block, 0, 256);
  ASSERT_TRUE(head);
  EXPECT_EQ(FcHead::parse(*head), (FcHead{0, Tid{3}}));
  const auto range = parse_fc_tlv(block, head->end(), 256);
  ASSERT_TRUE(range);
  EXPECT_EQ(FcAddRange::parse(*range), (FcAddRange{.ino = Ino{12},
                                                   .lblk = LogicalBlock{0},
                                                   .len = 1,
                                                   .unwritten = false,
                                                   .pblk = FsBlock{0x8200}}));
  const auto inode = parse_fc_tlv(block, range->end(), 256);
  ASSERT_TRUE(inode);
  EXPECT_EQ(FcInode::parse(*inode).ino, Ino{12});
  EXPECT_EQ(FcInode::parse(*inode).raw.size(), 160U);
  const auto tail = parse_fc_tlv(block, inode->end(), 256);
  ASSERT_TRUE(tail);
  EXPECT_EQ(FcTail::parse(*tail), (FcTail{Tid{3}, 0x5a55d79a}));
  EXPECT_EQ(tail->end(), 4096U);
  EXPECT_EQ(crc32c(kFastCommitChecksumSeed, ByteSpan(block).first(tail->offset + kFcTailCovered)),
            0x5a55d79aU);
}

TEST(Vectors, KernelFastCommitIsBuilt) {
  const auto block = sample_fast_commit();
  FastCommitBuilder builder(4096);
  std::vector<std::byte> tlv;
  FcHead{0, Tid{3}}.build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  tlv.clear();
  FcAddRange{Ino{12}, LogicalBlock{0}, 1, false, FsBlock{0x8200}}.build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  tlv.clear();
  const auto inode = parse_fc_tlv(block, 32, 256);
  ASSERT_TRUE(inode);
  FcInode::parse(*inode).build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  builder.finish(Tid{3});
  ASSERT_EQ(builder.blocks().size(), 1U);
  EXPECT_EQ(builder.blocks()[0], block);
}

}  // namespace
}  // namespace jbdlab::jbd2
