#include "sim/ext4/dir/dir_block.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/crc32c.h"

namespace jbdlab::ext4 {
namespace {

constexpr DirFormat kFormat{
    .block_size = 1024, .inodes = 1000, .checksums = true, .file_types = true};
constexpr DirFormat kPlain{
    .block_size = 1024, .inodes = 1000, .checksums = false, .file_types = false};
using Block = std::vector<std::byte>;

Block new_directory(const DirFormat& format) {
  Block block(format.block_size);
  init_dot_entries(format, block, Ino{12}, Ino{2});
  return block;
}

void add(const DirFormat& format, Block& block, std::string_view name, std::uint32_t ino) {
  const auto slot = find_dir_slot(format, block, name);
  ASSERT_TRUE(slot.has_value()) << name;
  insert_dir_entry(format, block, *slot,
                   {.ino = Ino{ino}, .type = FileType::regular, .name = name});
}

// "name@offset+rec_len" of every entry, unused ones as "-".
std::string shape(const DirFormat& format, const Block& block) {
  std::string out;
  for (std::uint32_t offset = 0; offset < format.entries_end();) {
    const DirEntry entry = dir_entry_at(block, offset);
    if (!out.empty()) out += ' ';
    out += (entry.used() ? dir_entry_name(block, offset) : "-") + '@' + std::to_string(offset) +
           '+' + std::to_string(entry.rec_len);
    offset += entry.rec_len;
  }
  return out;
}

TEST(DirBlock, ANewDirectoryHoldsItselfAndItsParent) {
  const Block block = new_directory(kFormat);
  EXPECT_EQ(shape(kFormat, block), ".@0+12 ..@12+1000");
  EXPECT_EQ(dir_entry_at(block, 0).ino, Ino{12});
  EXPECT_EQ(dir_entry_at(block, 0).type(), FileType::directory);
  EXPECT_EQ(dir_entry_at(block, 12).ino, Ino{2});
  EXPECT_TRUE(check_dir_block(kFormat, block).has_value());
  // The tail: an unused entry of 12 bytes, type 0xDE, at the very end.
  EXPECT_EQ(get_le<std::uint64_t>(block, 1012), 0xDE00'000C'0000'0000U);

  EXPECT_EQ(shape(kPlain, new_directory(kPlain)), ".@0+12 ..@12+1012");
  EXPECT_EQ(dir_entry_at(new_directory(kPlain), 0).raw_type, 0);
}

TEST(DirBlock, AnEntryTakesTheFirstRoomThatIsLargeEnough) {
  Block block = new_directory(kFormat);
  add(kFormat, block, "abcd", 20);
  add(kFormat, block, "longer_name", 21);
  add(kFormat, block, "z", 22);
  EXPECT_EQ(shape(kFormat, block), ".@0+12 ..@12+12 abcd@24+12 longer_name@36+20 z@56+956");
  ASSERT_TRUE(remove_dir_entry(kFormat, block, 36));
  EXPECT_EQ(shape(kFormat, block), ".@0+12 ..@12+12 abcd@24+32 z@56+956");
  EXPECT_EQ(get_le<std::uint64_t>(block, 36), 0U) << "what was removed is wiped";
  add(kFormat, block, "too_long_for_20", 23);  // 24 bytes do not fit into the 20
  add(kFormat, block, "fits", 24);
  add(kFormat, block, "8_more", 25);  // 16 bytes do not fit into the 8 left
  EXPECT_EQ(shape(kFormat, block),
            ".@0+12 ..@12+12 abcd@24+12 fits@36+20 z@56+12 too_long_for_20@68+24 8_more@92+920");
}

TEST(DirBlock, TheFirstEntryOfABlockBecomesUnusedWhenItIsRemoved) {
  Block block(kFormat.block_size);
  init_empty_dir_block(kFormat, block);
  add(kFormat, block, "first", 20);
  add(kFormat, block, "second", 21);
  ASSERT_TRUE(remove_dir_entry(kFormat, block, 0));
  EXPECT_EQ(shape(kFormat, block), "-@0+16 second@16+996");
  add(kFormat, block, "again", 22);
  EXPECT_EQ(shape(kFormat, block), "again@0+16 second@16+996");
  EXPECT_FALSE(remove_dir_entry(kFormat, block, 4)) << "no entry begins there";
}

TEST(DirBlock, NamesAreFoundWhole) {
  Block block = new_directory(kFormat);
  add(kFormat, block, "name", 20);
  add(kFormat, block, "name2", 21);
  EXPECT_EQ(find_dir_entry(kFormat, block, "name"), 24U);
  EXPECT_EQ(find_dir_entry(kFormat, block, "name2"), 36U);
  EXPECT_EQ(find_dir_entry(kFormat, block, ".."), 12U);
  EXPECT_EQ(find_dir_entry(kFormat, block, "nam"), std::unexpected(DirMiss::absent));
  EXPECT_EQ(find_dir_slot(kFormat, block, "name"), std::unexpected(DirMiss::exists));
}

// As many entries as the arithmetic of the format says, and not one more.
struct Capacity {
  const char* test_name;
  DirFormat format;
  std::size_t name_size;
  std::size_t entries;
};
class DirCapacity : public ::testing::TestWithParam<Capacity> {};
constexpr std::array kCapacities{
    Capacity{"shortest_names", kFormat, 1, (1024 - 12 - 24) / 12},
    Capacity{"names_of_four", kFormat, 4, (1024 - 12 - 24) / 12},
    Capacity{"names_of_five", kFormat, 5, (1024 - 12 - 24) / 16},
    Capacity{"longest_names", kFormat, 255, 3},
    Capacity{"without_a_tail", kPlain, 4, (1024 - 24) / 12},
};
TEST_P(DirCapacity, IsWhatTheFormatLeaves) {
  const auto& [name, format, name_size, entries] = GetParam();
  Block block = new_directory(format);
  const auto make_name = [size = name_size](std::size_t i) {
    std::string text(size, 'x');
    text[0] = static_cast<char>('0' + i);
    return text;
  };
  for (std::size_t i = 0; i < entries; ++i) {
    add(format, block, make_name(i), static_cast<std::uint32_t>(i) + 20);
  }
  EXPECT_EQ(find_dir_slot(format, block, make_name(entries)), std::unexpected(DirMiss::full));
  EXPECT_TRUE(check_dir_block(format, block).has_value());
  EXPECT_TRUE(find_dir_entry(format, block, make_name(entries - 1)).has_value());
}
INSTANTIATE_TEST_SUITE_P(DirBlock, DirCapacity, ::testing::ValuesIn(kCapacities),
                         [](const auto& row) { return std::string(row.param.test_name); });

TEST(DirBlock, TheChecksumCoversAllButTheTail) {
  Block block = new_directory(kFormat);
  update_dir_checksum(kFormat, block, 0x1234);
  EXPECT_TRUE(dir_checksum_ok(kFormat, block, 0x1234));
  EXPECT_EQ(get_le<std::uint32_t>(block, 1020), crc32c(0x1234, ByteSpan(block).first(1012)));
  EXPECT_FALSE(dir_checksum_ok(kFormat, block, 0x1235));
  block[1000] ^= std::byte{1};
  EXPECT_FALSE(dir_checksum_ok(kFormat, block, 0x1234));

  Block plain = new_directory(kPlain);
  const Block before = plain;
  update_dir_checksum(kPlain, plain, 0x1234);
  EXPECT_EQ(plain, before);
}

// One byte of a sound block changed: what is said about it.
struct Damage {
  const char* test_name;
  std::size_t offset;
  std::uint8_t value;
  const char* sentence;  // part of it
};
class DirDamage : public ::testing::TestWithParam<Damage> {};
constexpr std::array kDamages{
    Damage{"rec_len_zero", 28, 0, "shorter than any entry"},
    Damage{"rec_len_odd", 28, 13, "no multiple of 4"},
    Damage{"rec_len_misses_the_end", 53, 0x01, "entry at offset"},
    Damage{"name_longer_than_the_entry", 30, 5, "too short for its name"},
    Damage{"rec_len_beyond_the_end", 53, 0x07, "beyond the end"},
    Damage{"rec_len_stops_just_before_the_end", 52, 0xC0, "leaves no room"},
    Damage{"inode_out_of_range", 26, 1, "beyond the last inode"},
    Damage{"tail_without_its_type", 1019, 0xDF, "checksum tail"},
    Damage{"tail_in_use", 1012, 1, "checksum tail"},
};
TEST_P(DirDamage, IsNoticed) {
  const auto& [name, offset, value, sentence] = GetParam();
  Block block = new_directory(kFormat);
  add(kFormat, block, "abcd", 20);  // 24 + 12
  add(kFormat, block, "efgh", 21);  // 36 + 12
  add(kFormat, block, "last", 22);  // 48 + 964
  ASSERT_TRUE(check_dir_block(kFormat, block).has_value());
  block[offset] = std::byte{value};
  const Result<void> checked = check_dir_block(kFormat, block);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Errc::invalid);
  EXPECT_NE(checked.error().what.find(sentence), std::string::npos) << checked.error().what;
}
INSTANTIATE_TEST_SUITE_P(DirBlock, DirDamage, ::testing::ValuesIn(kDamages),
                         [](const auto& row) { return std::string(row.param.test_name); });

// Whatever the bytes are, a search ends, and says so if it could not go on.
TEST(DirBlock, SearchesEndInAnyBlock) {
  std::uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    Block block(kFormat.block_size);
    for (std::byte& b : block) {
      state = state * 1664525 + 1013904223;
      // Small values make chains that look plausible for a while.
      b = static_cast<std::byte>((state >> 24) % (round % 2 == 0 ? 256 : 20));
    }
    const auto found = find_dir_entry(kFormat, block, "a");
    const auto slot = find_dir_slot(kFormat, block, "a");
    if (found) {
      EXPECT_EQ(dir_entry_name(block, *found), "a");
    }
    if (slot) {
      EXPECT_GE(dir_entry_at(block, *slot).slack(), 12U);
    }
    Block copy = block;
    if (remove_dir_entry(kFormat, copy, 12)) {
      EXPECT_EQ(dir_entry_at(block, 0).rec_len, 12U);
    }
    EXPECT_FALSE(check_dir_block(kFormat, block).has_value());
  }
}

struct TypeRow {
  std::uint16_t mode;
  FileType type;
};
TEST(DirBlock, TypesFollowTheMode) {
  constexpr std::array kRows{
      TypeRow{0x81A4, FileType::regular},     TypeRow{0x41ED, FileType::directory},
      TypeRow{0xA1FF, FileType::symlink},     TypeRow{0x1180, FileType::fifo},
      TypeRow{0x2180, FileType::char_device}, TypeRow{0x6180, FileType::block_device},
      TypeRow{0xC180, FileType::socket},      TypeRow{0x0180, FileType::unknown},
  };
  for (const TypeRow& row : kRows) EXPECT_EQ(file_type_of(row.mode), row.type) << row.mode;
}

}  // namespace
}  // namespace jbdlab::ext4
