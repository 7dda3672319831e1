#include "sim/ext4/dir_hash.h"

#include <ext2fs/ext2fs.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "sim/engine/random.h"

namespace jbdlab::ext4 {
namespace {

// Little-endian words of the uuid 0badcafe-1234-5678-9abc-0123456789ab, the seed of the recordings.
constexpr std::array<std::uint32_t, 4> kSeed{0xFECAAD0B, 0x78563412, 0x2301BC9A, 0xAB896745};
constexpr std::array<std::uint32_t, 4> kNoSeed{};

struct Row {
  const char* name;
  DirHashVersion version;
  bool unsigned_chars;
  std::array<std::uint32_t, 4> seed;
  std::string_view file;
  DirHash want;
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};

// Answers of debugfs 1.47, "dx_hash -h VERSION -s UUID NAME".
constexpr auto kLegacy = DirHashVersion::legacy;
constexpr auto kHalf = DirHashVersion::half_md4;
constexpr auto kTea = DirHashVersion::tea;
constexpr std::string_view kLong = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
constexpr Row kRows[] = {
    {"LegacyOfOneCharacter", kLegacy, false, kSeed, "a", {0xe74b53e2, 0}},
    {"HalfMd4OfOneCharacter", kHalf, false, kSeed, "a", {0x6fc4549a, 0x96cdd4f1}},
    {"TeaOfOneCharacter", kTea, false, kSeed, "a", {0xb60f9472, 0xb5841707}},
    {"LegacyOfWholeWords", kLegacy, false, kSeed, "file0001", {0x1f483f0a, 0}},
    {"HalfMd4OfWholeWords", kHalf, false, kSeed, "file0001", {0x5a72bf58, 0xb3c6d395}},
    {"TeaOfWholeWords", kTea, false, kSeed, "file0001", {0x57f1b7b0, 0x7271a836}},
    {"HalfMd4OfOneWholeChunk",
     kHalf,
     false,
     kSeed,
     "exactly-thirty-two-characters-ab",
     {0x65946772, 0x40fe5daf}},
    {"TeaOfTwoWholeChunks",
     kTea,
     false,
     kSeed,
     "exactly-thirty-two-characters-ab",
     {0x427bf590, 0x3428c217}},
    {"LegacyOfALongName", kLegacy, false, kSeed, kLong, {0x1a3e33a2, 0}},
    {"HalfMd4OfALongName", kHalf, false, kSeed, kLong, {0xf8d55c16, 0x5404f9a2}},
    {"TeaOfALongName", kTea, false, kSeed, kLong, {0x25d4b316, 0x3370605b}},
    {"LegacyOfSignedCharacters", kLegacy, false, kSeed, "\xc3\xa9t\xc3\xa9", {0x70d7b7fc, 0}},
    {"HalfMd4OfSignedCharacters",
     kHalf,
     false,
     kSeed,
     "\xc3\xa9t\xc3\xa9",
     {0x8cdc075a, 0xd99d9695}},
    {"TeaOfSignedCharacters", kTea, false, kSeed, "\xc3\xa9t\xc3\xa9", {0xfa8b9ce0, 0xea51785c}},
    {"HalfMd4WithoutSeed", kHalf, false, kNoSeed, "a", {0xd5fa7d7a, 0xacb48187}},
};

class DirHashTest : public ::testing::TestWithParam<Row> {};

TEST_P(DirHashTest, IsThatOfDebugfs) {
  const Row& row = GetParam();
  EXPECT_EQ(dir_hash(row.version, row.unsigned_chars, row.seed, row.file), row.want);
}

INSTANTIATE_TEST_SUITE_P(Rows, DirHashTest, ::testing::ValuesIn(kRows),
                         [](const auto& each) { return std::string(each.param.name); });

// The numbers of e2fsprogs: the three versions again, with unsigned characters.
TEST(DirHash, IsThatOfLibext2fsForAnyName) {
  sim::Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string name;
    for (std::uint64_t n = 1 + random.below(255); n > 0; --n) {
      name += static_cast<char>(1 + random.below(255));
    }
    std::array<std::uint32_t, 4> seed{};
    if (random.chance(9, 10)) {
      for (std::uint32_t& word : seed) word = static_cast<std::uint32_t>(random.next());
    }
    for (int version = 0; version < 6; ++version) {
      ext2_dirhash_t major = 0;
      ext2_dirhash_t minor = 0;
      ASSERT_EQ(ext2fs_dirhash(version, name.data(), static_cast<int>(name.size()), seed.data(),
                               &major, &minor),
                0);
      EXPECT_EQ(dir_hash(static_cast<DirHashVersion>(version % 3), version >= 3, seed, name),
                (DirHash{major, minor}))
          << "name " << i << ", version " << version;
    }
  }
}

TEST(DirHash, HasItsLowBitClear) {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "f" + std::to_string(i);
    for (const auto version : {kLegacy, kHalf, kTea}) {
      EXPECT_EQ(dir_hash(version, false, kSeed, name).major & 1, 0u) << name;
    }
  }
}

}  // namespace
}  // namespace jbdlab::ext4
