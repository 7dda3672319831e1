#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

LogSuperblock sample() {
  return LogSuperblock::create({.block_size = 4096,
                                .block_count = 16640,
                                .first = LogBlock{1},
                                .uuid = sample_uuid(),
                                .fast_commit_blocks = 256});
}

TEST(LogSuperblock, FieldsComeBack) {
  LogSuperblock s = sample();
  s.set_sequence(Tid{0xFFFF'FFFE});
  s.set_start(LogBlock{1234});
  s.set_errno(-5);
  s.set_head(LogBlock{77});
  s.set_features({0, 0x12, 0});
  Uuid user = sample_uuid();
  user[0] = std::byte{1};
  s.set_user(47, user);
  s.update_checksum();
  std::vector<std::byte> block(4096, std::byte{0xEE});
  s.build(block);
  EXPECT_EQ(block[1024], std::byte{0xEE});
  const auto again = LogSuperblock::parse(block);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, s);
  EXPECT_EQ(again->version(), 2U);
  EXPECT_EQ(again->block_size(), 4096U);
  EXPECT_EQ(again->block_count(), 16640U);
  EXPECT_EQ(again->first(), LogBlock{1});
  EXPECT_EQ(again->sequence(), Tid{0xFFFF'FFFE});
  EXPECT_EQ(again->start(), LogBlock{1234});
  EXPECT_EQ(again->errno_value(), -5);
  EXPECT_EQ(again->head(), LogBlock{77});
  EXPECT_EQ(again->uuid(), sample_uuid());
  EXPECT_EQ(again->user(47), user);
  EXPECT_EQ(again->user_count(), 1U);
  EXPECT_EQ(again->checksum_type(), 4);
  EXPECT_TRUE(again->checksum_ok());
  // Fields lie where the kernel looks for them.
  EXPECT_EQ(get_be<std::uint32_t>(block, 0x20), 0xFFFF'FFFBU);
  EXPECT_EQ(get_be<std::uint32_t>(block, 0x54), 256U);
  EXPECT_EQ(get_be<std::uint32_t>(block, 0x58), 77U);
}

TEST(LogSuperblock, ChecksumIsThatOfTheBytes) {
  LogSuperblock s = sample();
  s.set_features({0, 0x10, 0});
  s.update_checksum();
  std::vector<std::byte> block(1024);
  for (const std::size_t at : {std::size_t{0x18}, std::size_t{0xFC}, std::size_t{1023}}) {
    s.build(block);
    block[at] ^= std::byte{4};
    const auto again = LogSuperblock::parse(block);
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->checksum_ok()) << at;
  }
  s.set_features({1, 0, 0});  // v1 protects no superblock
  EXPECT_TRUE(s.checksum_ok());
  EXPECT_EQ(s.checksum_type(), 0);
}

TEST(LogSuperblock, VersionOneHasNoFeatures) {
  LogSuperblock s = sample();
  s.set_features({1, 0x3F, 0});
  std::vector<std::byte> block(1024);
  s.build(block);
  set_be<std::uint32_t>(block, 4, 3);
  const auto v1 = LogSuperblock::parse(block);
  ASSERT_TRUE(v1);
  EXPECT_EQ(v1->version(), 1U);
  EXPECT_EQ(v1->features(), Features{});
  EXPECT_EQ(v1->fast_commit_blocks(), 0U);
}

TEST(LogSuperblock, RefusesWhatIsNone) {
  std::vector<std::byte> block(1024);
  EXPECT_EQ(LogSuperblock::parse(ByteSpan(block).first(1023)).error().code, Errc::truncated);
  EXPECT_EQ(LogSuperblock::parse(block).error().code, Errc::bad_magic);
  BlockHeader{BlockType::commit, Tid{1}}.build(block);
  const auto commit = LogSuperblock::parse(block);
  ASSERT_FALSE(commit);
  EXPECT_EQ(commit.error().what, "a journal superblock has block type 3 or 4, found 2");
}

TEST(Features, HaveDumpe2fsNames) {
  const Features f{0x1001, 0x3F | 0x80, 0x8};
  const std::vector<std::string> want{
      "journal_checksum",     "FEATURE_C12",         "journal_incompat_revoke", "journal_64bit",
      "journal_async_commit", "journal_checksum_v2", "journal_checksum_v3",     "fast_commit",
      "FEATURE_I7",           "FEATURE_R3"};
  EXPECT_EQ(f.names(), want);
  EXPECT_EQ(f.unknown(), (Features{0, 0x80, 8}));
  EXPECT_TRUE(f.has_checksum_conflict());
}

// Numbers of journal-format.md, section 4.
TEST(Geometry, OfSixtyFiveMibWithFastCommits) {
  LogSuperblock s = sample();
  Features f;
  f.set(feature::kFastCommit);
  s.set_features(f);
  const Geometry g = Geometry::of(s);
  EXPECT_EQ(g.end(), LogBlock{16384});
  EXPECT_EQ(g.fast_commit_first(), LogBlock{16385});
  EXPECT_EQ(g.fast_commit_count(), 255U);
  EXPECT_EQ(g.next(LogBlock{16383}), LogBlock{1});
  EXPECT_EQ(g.next(LogBlock{1}), LogBlock{2});
  EXPECT_EQ(g.advance(LogBlock{16383}, 3), LogBlock{3});
  EXPECT_EQ(g.advance(LogBlock{5}, g.count()), LogBlock{5});
  EXPECT_EQ(g.distance(LogBlock{16383}, LogBlock{3}), 3U);
  EXPECT_EQ(g.distance(LogBlock{3}, LogBlock{16383}), 16380U);
  EXPECT_FALSE(g.contains(LogBlock{16384}));
}

TEST(Geometry, StoredZeroMeans256) {
  LogSuperblock s = sample();
  s.set_stored_fast_commit_blocks(0);
  EXPECT_EQ(Geometry::of(s).end(), LogBlock{16640});
  Features f;
  f.set(feature::kFastCommit);
  s.set_features(f);
  EXPECT_EQ(Geometry::of(s).end(), LogBlock{16384});
}

struct Rule {
  const char* name;
  std::function<void(LogSuperblock&)> breaks;
  std::string_view id;
  bool usable;
};
const Rule kRules[] = {
    {"is_sound", [](LogSuperblock&) {}, "", true},
    {"length_beyond_the_file", [](LogSuperblock& s) { s.set_block_count(20001); },
     "superblock-length", false},
    {"first_is_zero", [](LogSuperblock& s) { s.set_first(LogBlock{0}); }, "superblock-first",
     false},
    {"first_is_the_end", [](LogSuperblock& s) { s.set_first(LogBlock{16640}); }, "superblock-first",
     false},
    {"start_is_in_the_fast_commit_area",
     [](LogSuperblock& s) {
       s.set_features({0, 0x20, 0});
       s.set_start(LogBlock{16384});
     },
     "superblock-start", false},
    {"unknown_incompat", [](LogSuperblock& s) { s.set_features({0, 0x40, 0}); },
     "superblock-features", false},
    {"unknown_ro_compat", [](LogSuperblock& s) { s.set_features({0, 0, 1}); },
     "superblock-features", false},
    {"unknown_compat_is_allowed", [](LogSuperblock& s) { s.set_features({0x100, 0, 0}); }, "",
     true},
    {"v2_and_v3", [](LogSuperblock& s) { s.set_features({0, 0x18, 0}); },
     "superblock-checksum-conflict", false},
    {"area_too_large",
     [](LogSuperblock& s) {
       s.set_features({0, 0x20, 0});
       s.set_stored_fast_commit_blocks(16639);
     },
     "superblock-fast-commit-area", false},
    {"too_small", [](LogSuperblock& s) { s.set_block_count(1023); }, "journal-too-small", true},
    {"aborted", [](LogSuperblock& s) { s.set_errno(-5); }, "journal-errno", true},
    {"head_outside", [](LogSuperblock& s) { s.set_head(LogBlock{16640}); }, "head-out-of-range",
     true},
};

class SuperblockRule : public testing::TestWithParam<Rule> {};

TEST_P(SuperblockRule, IsChecked) {
  LogSuperblock s = sample();
  GetParam().breaks(s);
  s.update_checksum();
  FindingLog log;
  const auto refused = check_superblock(s, {.block_size = 4096, .block_count = 20000}, log);
  EXPECT_EQ(!refused.has_value(), GetParam().usable);
  const auto findings = std::move(log).finish();
  if (GetParam().id.empty()) {
    EXPECT_TRUE(findings.empty());
  } else {
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind->id, GetParam().id);
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, SuperblockRule, testing::ValuesIn(kRules),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(SuperblockRules, ReportEveryRuleAndRefuseForTheFirst) {
  LogSuperblock s = sample();
  s.set_features({0, 0x10, 0});
  s.set_errno(-117);
  FindingLog log;  // the checksum was never stored
  const auto refused = check_superblock(s, {.block_size = 1024, .block_count = 16640}, log);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->what,
            "the journal superblock names another block size than the file system: "
            "expected 1024, found 4096");
  EXPECT_EQ(log.count(), 3U);
}

}  // namespace
}  // namespace jbdlab::jbd2
