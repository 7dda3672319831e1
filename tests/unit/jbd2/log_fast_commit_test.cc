// Fast commits behind the ring (journal-format.md, section 8.3, H1 and H3).
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "jbd2/format/fast_commit.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

// A journal of 1100 blocks of 1 KiB with a ring [1, 1036) and an area [1037, 1100), which holds
// transaction 2 and three fast commits of tid 3: at 1037 (two blocks), 1039 and 1040.
class FastCommits {
 public:
  FastCommits() : journal({.fast_commit_blocks = 64}) {
    journal.add_blocks(3);
    FastCommitBuilder builder(1024);
    add_head(builder, Tid{3});
    for (int i = 0; i < 6; ++i) add_link(builder, "a long name " + std::string(230, 'x'));
    builder.finish(Tid{3});
    add_link(builder, "b");
    builder.finish(Tid{3});
    add_link(builder, "c");
    builder.finish(Tid{3});
    put(builder, LogBlock{1037});
  }
  static void add_head(FastCommitBuilder& builder, Tid tid, std::uint32_t features = 0) {
    std::vector<std::byte> tlv;
    FcHead{features, tid}.build(tlv);
    CHECK(builder.add(tlv));
  }
  static void add_link(FastCommitBuilder& builder, std::string_view name) {
    std::vector<std::byte> tlv;
    FcDentry{FcTag::link, Ino{2}, Ino{13}, name}.build(tlv);
    CHECK(builder.add(tlv));
  }
  void put(const FastCommitBuilder& builder, LogBlock at) {
    for (const auto& block : builder.blocks()) {
      journal.source().put(at, BlockRef::copy_of(block));
      at = LogBlock{at.value() + 1};
    }
  }

  TestJournal journal;
};

struct Row {
  const char* name;
  std::function<void(FastCommits&)> change;
  std::string_view live;
  std::string_view all;
  std::string_view findings;
};
const Row kRows[] = {
    {"sound", [](FastCommits&) {}, "3 replayable, 3 replayable, 3 replayable",
     "3 replayable, 3 replayable, 3 replayable", ""},
    {"stale_after_full_commit", [](FastCommits& f) { f.journal.add_blocks(1); }, "",
     "3 stale, 3 stale, 3 stale", ""},
    {"none", [](FastCommits& f) { f.journal.zero(LogBlock{1037}); }, "3 corrupt, 3 corrupt",
     "3 corrupt, 3 corrupt", "fast-commit-hole"},
    {"torn_first_zeroed", [](FastCommits& f) { f.journal.zero(LogBlock{1038}); },
     "3 incomplete, 3 corrupt, 3 corrupt", "3 incomplete, 3 corrupt, 3 corrupt",
     "fast-commit-torn fast-commit-hole"},
    {"torn_first_only",
     [](FastCommits& f) {
       for (std::uint32_t b = 1038; b < 1041; ++b) f.journal.zero(LogBlock{b});
     },
     "3 incomplete", "3 incomplete", "fast-commit-torn"},
    {"first_checksum", [](FastCommits& f) { f.journal.flip(LogBlock{1037}, 50); },
     "3 corrupt, 3 corrupt, 3 corrupt", "3 corrupt, 3 corrupt, 3 corrupt",
     "fast-commit-checksum fast-commit-torn fast-commit-hole"},
    {"last_checksum", [](FastCommits& f) { f.journal.flip(LogBlock{1040}, 16); },
     "3 replayable, 3 replayable, 3 corrupt", "3 replayable, 3 replayable, 3 corrupt",
     "fast-commit-checksum"},
    {"last_missing", [](FastCommits& f) { f.journal.zero(LogBlock{1040}); },
     "3 replayable, 3 replayable", "3 replayable, 3 replayable", ""},
    {"middle_missing", [](FastCommits& f) { f.journal.zero(LogBlock{1039}); },
     "3 replayable, 3 corrupt", "3 replayable, 3 corrupt", "fast-commit-hole"},
    {"last_breaks_off", [](FastCommits& f) { f.journal.flip(LogBlock{1040}, 13, 0xFF); },
     "3 replayable, 3 replayable, 3 incomplete", "3 replayable, 3 replayable, 3 incomplete",
     "fast-commit-tlv"},
    {"older_behind",
     [](FastCommits& f) {
       FastCommitBuilder older(1024);
       FastCommits::add_link(older, "old");
       older.finish(Tid{2});
       f.put(older, LogBlock{1041});
     },
     "3 replayable, 3 replayable, 3 replayable",
     "3 replayable, 3 replayable, 3 replayable, 2 stale", ""},
    {"features",
     [](FastCommits& f) {
       FastCommitBuilder builder(1024);
       FastCommits::add_head(builder, Tid{3}, 1);
       builder.finish(Tid{3});
       f.put(builder, LogBlock{1037});
       for (std::uint32_t b = 1038; b < 1041; ++b) f.journal.zero(LogBlock{b});
     },
     "3 corrupt", "3 corrupt", "fast-commit-features"},
    {"area_full",
     [](FastCommits& f) {
       FastCommitBuilder builder(1024);
       FastCommits::add_head(builder, Tid{3});
       for (int i = 0; i < 63; ++i) builder.finish(Tid{3});
       f.put(builder, LogBlock{1037});
       for (std::uint32_t b = 1039; b < 1100; ++b) f.journal.flip(LogBlock{b}, 900);
       f.journal.flip(LogBlock{1099}, 1023);  // padding: nothing covers it
       for (std::uint32_t b = 1039; b < 1100; ++b) f.journal.flip(LogBlock{b}, 900);
     },
     "", "", "fast-commit-area-full"},
    {"ring_ends_in_damage", [](FastCommits& f) { f.journal.flip(LogBlock{5}, 17); },
     "3 corrupt, 3 corrupt, 3 corrupt", "3 corrupt, 3 corrupt, 3 corrupt",
     "commit-checksum fast-commit-unreachable"},
    {"clean_unmount",
     [](FastCommits& f) {
       Features features = f.journal.superblock().features();
       features.clear(feature::kFastCommit);
       f.journal.superblock().set_features(features);
       f.journal.superblock().set_start(LogBlock{0});
       f.journal.write_superblock();
     },
     "", "3 stale, 3 stale, 3 stale", ""},
    {"empty_log_with_the_feature",
     [](FastCommits& f) {
       f.journal.superblock().set_start(LogBlock{0});
       f.journal.write_superblock();
     },
     "", "3 stale, 3 stale, 3 stale", ""},
};

class FastCommitScanRow : public testing::TestWithParam<Row> {};

TEST_P(FastCommitScanRow, GivesStatesAndFindings) {
  FastCommits f;
  GetParam().change(f);
  const auto live = f.journal.read();
  const auto all = f.journal.read({.all = true});
  ASSERT_TRUE(live && all);
  EXPECT_EQ(finding_ids(*live), GetParam().findings);
  EXPECT_EQ(finding_ids(*all), GetParam().findings);
  if (GetParam().findings == "fast-commit-area-full") {
    EXPECT_EQ(live->fast_commits.size(), 63U);
    for (const LogFastCommit& c : live->fast_commits) EXPECT_EQ(c.state, LogState::replayable);
    return;
  }
  EXPECT_EQ(fast_commit_states(*live), GetParam().live);
  EXPECT_EQ(fast_commit_states(*all), GetParam().all);
}
INSTANTIATE_TEST_SUITE_P(Rows, FastCommitScanRow, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(FastCommitScan, DecodesTags) {
  FastCommits f;
  FastCommitBuilder builder(1024);
  FastCommits::add_head(builder, Tid{3});
  std::vector<std::byte> tlv;
  FcAddRange{Ino{12}, LogicalBlock{5}, 7, true, FsBlock{0x1'0000'0000}}.build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  tlv.clear();
  FcDelRange{Ino{14}, LogicalBlock{6}, 8}.build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  tlv.clear();
  FcInode{Ino{15}, std::vector<std::byte>(160)}.build(tlv);
  ASSERT_TRUE(builder.add(tlv));
  FastCommits::add_link(builder, "name");
  builder.finish(Tid{3});
  f.put(builder, LogBlock{1037});
  f.journal.zero(LogBlock{1038});
  const auto log = f.journal.read();
  ASSERT_TRUE(log);
  ASSERT_FALSE(log->fast_commits.empty());
  const LogFastCommit& c = log->fast_commits[0];
  EXPECT_EQ(c.tid, Tid{3});
  EXPECT_EQ(c.log_block, LogBlock{1037});
  EXPECT_EQ(c.blocks, 1U);
  EXPECT_TRUE(c.crc_ok);
  ASSERT_EQ(c.tags.size(), 6U);
  EXPECT_EQ(c.tags[0].tag, FcTag::head);
  EXPECT_EQ(c.tags[0].tid, Tid{3});
  EXPECT_EQ(c.tags[1].ino, Ino{12});
  EXPECT_EQ(c.tags[1].lblk, LogicalBlock{5});
  EXPECT_EQ(c.tags[1].pblk, FsBlock{0x1'0000'0000});
  EXPECT_EQ(c.tags[1].len, 7U);
  EXPECT_TRUE(c.tags[1].unwritten);
  EXPECT_EQ(c.tags[2].tag, FcTag::del_range);
  EXPECT_EQ(c.tags[2].len, 8U);
  EXPECT_EQ(c.tags[3].tag, FcTag::inode);
  EXPECT_EQ(c.tags[3].ino, Ino{15});
  EXPECT_EQ(c.tags[3].len, 160U);
  EXPECT_EQ(c.tags[3].offset, 12U + 20 + 16);
  EXPECT_EQ(c.tags[4].name, "name");
  EXPECT_EQ(c.tags[4].parent, Ino{2});
  EXPECT_EQ(c.tags[4].ino, Ino{13});
  EXPECT_EQ(c.tags[5].tag, FcTag::tail);
}

}  // namespace
}  // namespace jbdlab::jbd2
