#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "jbd2/format/csum.h"
#include "jbd2/format/fast_commit.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

std::vector<std::byte> in_block(const std::vector<std::byte>& tlv, std::size_t size = 1024) {
  std::vector<std::byte> block = tlv;
  block.resize(size);
  return block;
}

TEST(FastCommitTlv, RangesComeBack) {
  const FcAddRange rows[] = {
      {Ino{12}, LogicalBlock{7}, 1, false, FsBlock{0x8200}},
      {Ino{12}, LogicalBlock{7}, 32768, false, FsBlock{0xFFFF'FFFF'FFFF}},
      {Ino{0xFFFF'FFFF}, LogicalBlock{0xFFFF'FFFE}, 32767, true, FsBlock{1}},
      {Ino{12}, LogicalBlock{0}, 1, true, FsBlock{1}},
  };
  for (const FcAddRange& want : rows) {
    std::vector<std::byte> tlv;
    want.build(tlv);
    EXPECT_EQ(tlv.size(), 20U);
    const auto block = in_block(tlv);
    const auto parsed = parse_fc_tlv(block, 0, 256);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(FcAddRange::parse(*parsed), want);
  }
  std::vector<std::byte> tlv;
  const FcDelRange del{Ino{3}, LogicalBlock{4}, 0xFFFF'FFFF};
  del.build(tlv);
  const auto block = in_block(tlv);
  EXPECT_EQ(FcDelRange::parse(*parse_fc_tlv(block, 0, 256)), del);
}

TEST(FastCommitTlv, NamesComeBack) {
  for (const FcTag tag : {FcTag::creat, FcTag::link, FcTag::unlink}) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{255}}) {
      const std::string name(length, '\xE4');
      std::vector<std::byte> tlv;
      FcDentry{tag, Ino{2}, Ino{14}, name}.build(tlv);
      const auto block = in_block(tlv);
      const auto parsed = parse_fc_tlv(block, 0, 256);
      ASSERT_TRUE(parsed);
      EXPECT_EQ(FcDentry::parse(*parsed), (FcDentry{tag, Ino{2}, Ino{14}, name}));
    }
  }
}

struct Length {
  const char* name;
  std::uint16_t tag;
  std::uint16_t length;
  bool legal;
};
constexpr Length kLengths[] = {
    {"nothing", 0, 0, false},
    {"unknown_tag", 10, 8, false},
    {"add_range", 1, 16, true},
    {"add_range_short", 1, 15, false},
    {"del_range", 2, 12, true},
    {"del_range_long", 2, 13, false},
    {"creat_without_name", 3, 8, false},
    {"creat_with_one", 3, 9, true},
    {"link_longest", 4, 263, true},
    {"unlink_too_long", 5, 264, false},
    {"inode_too_short", 6, 131, false},
    {"inode_old_size", 6, 132, true},
    {"inode_full_size", 6, 260, true},
    {"inode_too_long", 6, 261, false},
    {"pad_empty", 7, 0, true},
    {"pad_to_the_end", 7, 1020, true},
    {"pad_beyond", 7, 1021, false},
    {"tail_short", 8, 7, false},
    {"tail", 8, 8, true},
    {"tail_beyond", 8, 1021, false},
    {"head", 9, 8, true},
    {"head_long", 9, 9, false},
};
class FastCommitLength : public testing::TestWithParam<Length> {};
TEST_P(FastCommitLength, IsJudged) {
  std::vector<std::byte> block(1024);
  set_le(block, 0, GetParam().tag);
  set_le(block, 2, GetParam().length);
  EXPECT_EQ(parse_fc_tlv(block, 0, 256).has_value(), GetParam().legal);
}
INSTANTIATE_TEST_SUITE_P(Rows, FastCommitLength, testing::ValuesIn(kLengths),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(FastCommitTlv, HeaderNeedsFourBytes) {
  const std::vector<std::byte> block(1024);
  EXPECT_EQ(parse_fc_tlv(block, 1021, 256).error().code, Errc::truncated);
  EXPECT_EQ(parse_fc_tlv(block, 5000, 256).error().code, Errc::truncated);
}

// A TLV of n bytes may stand at offset o only if n <= B - 4 - o.
struct Fit {
  const char* name;
  std::size_t size;  // of a TLV at offset 768
  std::size_t blocks;
};
constexpr Fit kFits[] = {
    {"with_room_for_a_pad_header", 1024 - 4 - 768, 1},
    {"one_byte_too_long", 1024 - 4 - 768 + 1, 2},
};
class FastCommitFit : public testing::TestWithParam<Fit> {};
TEST_P(FastCommitFit, LeavesRoomForPad) {
  const auto dentry = [](std::size_t size) {
    std::vector<std::byte> tlv;
    FcDentry{FcTag::link, Ino{2}, Ino{3}, std::string(size - 12, 'a')}.build(tlv);
    return tlv;
  };
  FastCommitBuilder builder(1024);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(builder.add(dentry(256)));
  ASSERT_TRUE(builder.add(dentry(GetParam().size)));
  ASSERT_EQ(builder.blocks().size(), GetParam().blocks);
  const auto fourth = parse_fc_tlv(builder.blocks()[0], 768, 256);
  ASSERT_TRUE(fourth);
  EXPECT_EQ(fourth->tag, GetParam().blocks == 1 ? FcTag::link : FcTag::pad);
  EXPECT_EQ(fourth->end(), GetParam().blocks == 1 ? 1020U : 1024U);
}
INSTANTIATE_TEST_SUITE_P(Rows, FastCommitFit, testing::ValuesIn(kFits),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(FastCommitBuilder, RefusesWhatFitsNoBlock) {
  FastCommitBuilder builder(1024);
  std::vector<std::byte> tlv;
  const std::vector<std::byte> inode(1024 - 4 - 8);
  FcInode{Ino{12}, inode}.build(tlv);
  EXPECT_EQ(tlv.size(), 1020U);
  EXPECT_TRUE(builder.add(tlv));
  tlv.push_back(std::byte{0});
  EXPECT_FALSE(builder.add(tlv));
  EXPECT_EQ(builder.blocks().size(), 1U);
}

// The crc runs over PAD and starts again behind each TAIL.
TEST(FastCommitBuilder, ChecksumsEachFastCommit) {
  FastCommitBuilder builder(1024);
  std::vector<std::byte> tlv;
  FcHead{0, Tid{7}}.build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  for (int i = 0; i < 5; ++i) {
    tlv.clear();
    FcDentry{FcTag::creat, Ino{2}, Ino{3}, std::string(250, 'x')}.build(tlv);
    ASSERT_TRUE(builder.add(tlv));
  }
  builder.finish(Tid{7});
  builder.finish(Tid{7});  // an empty one
  ASSERT_EQ(builder.blocks().size(), 3U);
  const ByteSpan first = builder.blocks()[0];
  const ByteSpan second = builder.blocks()[1];
  const ByteSpan third = builder.blocks()[2];
  const std::size_t tail_at = 2 * 262;
  const auto tail = parse_fc_tlv(second, tail_at, 256);
  ASSERT_TRUE(tail && tail->tag == FcTag::tail);
  EXPECT_EQ(tail->end(), 1024U);
  const std::uint32_t want = crc32c(crc32c(0, first), second.first(tail_at + 8));
  EXPECT_EQ(FcTail::parse(*tail), (FcTail{Tid{7}, want}));
  const auto empty = parse_fc_tlv(third, 0, 256);
  ASSERT_TRUE(empty && empty->tag == FcTag::tail);
  EXPECT_EQ(empty->value.size(), 1020U);
  EXPECT_EQ(FcTail::parse(*empty).crc, crc32c(0, third.first(8)));
}

}  // namespace
}  // namespace jbdlab::jbd2
