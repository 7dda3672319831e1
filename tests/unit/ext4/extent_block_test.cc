#include "sim/ext4/extents/extent_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "sim/ext4/inode_seed.h"

namespace jbdlab::ext4 {

void PrintTo(const Extent& e, std::ostream* out) {
  *out << e.first.value() << "+" << e.len << " at " << e.physical.value()
       << (e.unwritten ? " unwritten" : "");
}

namespace {

constexpr Extent written(std::uint32_t first, std::uint32_t len, std::uint64_t physical) {
  return {LogicalBlock{first}, len, FsBlock{physical}, false};
}
constexpr Extent unwritten(std::uint32_t first, std::uint32_t len, std::uint64_t physical) {
  return {LogicalBlock{first}, len, FsBlock{physical}, true};
}

using Root = std::array<std::byte, 60>;

Root root_of(const std::vector<Extent>& extents) {
  Root bytes{};
  ExtentNodeEditor node = ExtentNodeEditor::build(bytes, kRootEntries, 0);
  for (std::uint32_t slot = 0; slot < extents.size(); ++slot) {
    node.open_gap(slot);
    node.put(slot, extents[slot]);
  }
  return bytes;
}

constexpr NodeRules kLeafRoot{0, kRootEntries, FsBlock{0}, FsBlock{1000}};

// ---- one entry

struct Merging {
  const char* name;
  Extent left, right;
  bool want;
};

constexpr std::array kMergings{
    Merging{"JoinsWhatContinues", written(10, 5, 100), written(15, 1, 105), true},
    Merging{"JoinsUnwritten", unwritten(10, 5, 100), unwritten(15, 1, 105), true},
    Merging{"KeepsKindsApart", written(10, 5, 100), unwritten(15, 1, 105), false},
    Merging{"KeepsKindsApartTheOtherWay", unwritten(10, 5, 100), written(15, 1, 105), false},
    Merging{"KeepsAHole", written(10, 5, 100), written(16, 1, 105), false},
    Merging{"KeepsAGapOnTheDisk", written(10, 5, 100), written(15, 1, 106), false},
    Merging{"KeepsTheOrder", written(15, 1, 105), written(10, 5, 100), false},
    Merging{"JoinsUpTo32768", written(0, 32767, 100), written(32767, 1, 32867), true},
    Merging{"RefusesMoreThan32768", written(0, 32768, 100), written(32768, 1, 32868), false},
    Merging{"JoinsUnwrittenUpTo32767", unwritten(0, 32766, 100), unwritten(32766, 1, 32866), true},
    Merging{"RefusesUnwritten32768", unwritten(0, 32767, 100), unwritten(32767, 1, 32867), false},
};

class ExtentMerging : public testing::TestWithParam<Merging> {};

TEST_P(ExtentMerging, IsTheKernelsRule) {
  EXPECT_EQ(can_merge(GetParam().left, GetParam().right), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(Rows, ExtentMerging, testing::ValuesIn(kMergings),
                         [](const auto& row) { return row.param.name; });

TEST(ExtentBlock, WhatIsPutIsRead) {
  constexpr std::array kExtents{written(0, 1, 1), written(7, 32768, 0x1234'5678'9abc),
                                unwritten(40'000, 1, 0xffff'ffff'ffff),
                                unwritten(0xffff'0000, 32767, 2)};
  const Root bytes = root_of({kExtents.begin(), kExtents.end()});
  const ExtentNode node{ByteSpan{bytes}};
  ASSERT_EQ(node.entries(), 4u);
  EXPECT_TRUE(node.full());
  for (std::uint32_t slot = 0; slot < 4; ++slot) EXPECT_EQ(node.extent(slot), kExtents[slot]);

  Root index{};
  ExtentNodeEditor editor = ExtentNodeEditor::build(index, kRootEntries, 1);
  editor.open_gap(0);
  const ExtentIndex want{LogicalBlock{77}, FsBlock{0xabcd'0123'4567}};
  editor.put(0, want);
  EXPECT_EQ(editor.view().index(0), want);
  EXPECT_EQ(editor.view().depth(), 1u);
}

// Bytes of a root that the kernel wrote (8 blocks unwritten at block 5, lying at 34817).
TEST(ExtentBlock, LengthsAbove32768AreUnwritten) {
  Root bytes{};
  ExtentNodeEditor::build(bytes, kRootEntries, 0).set_entries(1);
  constexpr std::array<unsigned char, 12> kEntry{5, 0, 0, 0, 0x08, 0x80, 0, 0, 0x01, 0x88, 0, 0};
  for (std::size_t i = 0; i < kEntry.size(); ++i) bytes[12 + i] = std::byte{kEntry[i]};
  EXPECT_EQ(ExtentNode(ByteSpan{bytes}).extent(0), unwritten(5, 8, 34817));
}

// ---- a node

TEST(ExtentBlock, CapacityLeavesRoomForTheTail) {
  EXPECT_EQ(entries_per_block(1024), 84u);
  EXPECT_EQ(entries_per_block(2048), 169u);
  EXPECT_EQ(entries_per_block(4096), 340u);
}

TEST(ExtentBlock, SearchEndsAtTheLastEntryThatBeginsAtOrBefore) {
  const Root bytes = root_of({written(10, 5, 100), written(20, 5, 200), written(30, 5, 300)});
  const ExtentNode node{ByteSpan{bytes}};
  constexpr std::array<std::array<std::uint32_t, 2>, 8> kRows{
      {{0, 0}, {10, 0}, {19, 0}, {20, 1}, {29, 1}, {30, 2}, {34, 2}, {0xffff'fffe, 2}}};
  for (const auto& [block, want] : kRows) {
    EXPECT_EQ(node.search(LogicalBlock{block}), want) << "block " << block;
  }
}

TEST(ExtentBlock, InsertAndRemoveMoveTheRest) {
  Root bytes = root_of({written(10, 5, 100), written(20, 5, 200), written(30, 5, 300)});
  ExtentNodeEditor node{bytes};
  node.open_gap(1);
  node.put(1, unwritten(17, 1, 900));
  node.remove(0);
  ASSERT_EQ(node.view().entries(), 3u);
  EXPECT_EQ(node.view().extent(0), unwritten(17, 1, 900));
  EXPECT_EQ(node.view().extent(1), written(20, 5, 200));
  EXPECT_EQ(node.view().extent(2), written(30, 5, 300));
}

// A leaf of five one-block extents as kernel 6.18 wrote it, on a file system with the uuid below.
TEST(ExtentBlock, ChecksumIsTheKernels) {
  constexpr std::array<unsigned char, 16> kUuid{0x6b, 0x0b, 0xad, 0xca, 0xfe, 0x12, 0x43, 0x45,
                                                0x86, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34};
  Geometry geometry;
  geometry.csum_seed = crc32c(~0U, std::as_bytes(std::span{kUuid}));
  std::array<std::byte, 1024> bytes{};
  ExtentNodeEditor leaf = ExtentNodeEditor::build(bytes, entries_per_block(1024), 0);
  for (std::uint32_t i = 0; i < 5; ++i) {
    leaf.open_gap(i);
    leaf.put(i, written(2 * i, 1, 8705 + i));
  }
  leaf.update_checksum(inode_checksum_seed(geometry, Ino{12}, 3056261780U));
  EXPECT_EQ(leaf.view().tail_offset(), 1020u);
  EXPECT_EQ(leaf.view().stored_checksum(), 0xf8db'73bcU);
}

// ---- damage

struct Damage {
  const char* name;
  std::size_t offset;  // of the 16-bit field of the root below that is overwritten
  std::uint16_t value;
  Errc want;
  const char* sentence;
};

// The root: three extents of 5 blocks at 10, 20 and 30, lying at 100, 200 and 300, on a file system
// of 1000 blocks.
constexpr std::array kDamages{
    Damage{"Magic", 0, 0, Errc::bad_magic, "magic is 0x0000, expected 0xf30a"},
    Damage{"MoreEntriesThanRoom", 2, 5, Errc::invalid, "5 entries where 0 to 4 are possible"},
    Damage{"NoRoom", 4, 0, Errc::invalid, "room for 0 entries, expected 1 to 4"},
    Damage{"MoreRoomThanBytes", 4, 5, Errc::invalid, "room for 5 entries, expected 1 to 4"},
    Damage{"OtherDepth", 6, 1, Errc::invalid, "depth is 1, expected 0"},
    Damage{"LengthZero", 16, 0, Errc::invalid, "length 0"},
    Damage{"Overlap", 16, 11, Errc::invalid,
           "begins at block 20 of the file, expected 21 or later"},
    Damage{"OutOfOrder", 12, 40, Errc::invalid, "begins at block 20"},
    Damage{"PhysicalHighHalf", 18, 1, Errc::invalid, "not inside of the file system's 1000"},
    Damage{"BlockZero", 20, 0, Errc::invalid, "5 blocks from 0 are not inside"},
    Damage{"LastBlockOutside", 44, 996, Errc::invalid, "5 blocks from 996 are not inside"},
};

class ExtentDamage : public testing::TestWithParam<Damage> {};

TEST_P(ExtentDamage, IsRefused) {
  Root bytes = root_of({written(10, 5, 100), written(20, 5, 200), written(30, 5, 300)});
  set_le<std::uint16_t>(bytes, GetParam().offset, GetParam().value);
  const auto parsed = ExtentNode::parse(bytes, kLeafRoot);
  const auto checked = parsed ? parsed->check_entries(kLeafRoot) : Result<void>{};
  ASSERT_FALSE(parsed && checked);
  const Error& error = parsed ? checked.error() : parsed.error();
  EXPECT_EQ(error.code, GetParam().want);
  EXPECT_THAT(error.what, testing::HasSubstr(GetParam().sentence));
}

TEST(ExtentBlock, AnExtentBehindTheLastFileBlockIsRefused) {
  for (const auto& [first, fits] : {std::pair{0xffff'fffbU, true}, {0xffff'fffcU, false}}) {
    const Root bytes = root_of({written(first, 5, 100)});
    EXPECT_EQ(ExtentNode(bytes).check_entries(kLeafRoot).has_value(), fits);
  }
}

TEST(ExtentBlock, SoundNodesPass) {
  const Root bytes = root_of({written(10, 5, 100), written(20, 5, 200), written(30, 5, 995)});
  const auto parsed = ExtentNode::parse(bytes, kLeafRoot);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->check_entries(kLeafRoot).has_value());
}

TEST(ExtentBlock, AnEmptyNodeIsALeaf) {
  Root bytes{};
  ExtentNodeEditor::build(bytes, kRootEntries, 0);
  EXPECT_TRUE(ExtentNode::parse(bytes, kLeafRoot).has_value());
  NodeRules index = kLeafRoot;
  index.depth = 1;
  ExtentNodeEditor::build(bytes, kRootEntries, 1);
  EXPECT_FALSE(ExtentNode::parse(bytes, index).has_value());
}

INSTANTIATE_TEST_SUITE_P(Rows, ExtentDamage, testing::ValuesIn(kDamages),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace jbdlab::ext4
