// The rules of the scan (journal-format.md, section 8.2) and the hard corners (section 10).
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "jbd2/format/csum.h"
#include "jbd2/format/descriptor.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

constexpr JournalKind kV3{};
constexpr JournalKind kV2{.checksums = ChecksumMode::v2};
constexpr JournalKind kV1{.checksums = ChecksumMode::v1};
constexpr JournalKind kNone{.checksums = ChecksumMode::none};
constexpr JournalKind kAsync{.checksums = ChecksumMode::v3, .async_commit = true};
constexpr JournalKind kAsyncV1{.checksums = ChecksumMode::v1, .async_commit = true};

// Three transactions, tids 2 to 4, of three blocks each: descriptor at 1, 6, 11; data behind it;
// commit blocks at 5, 10, 15.
struct Row {
  const char* name;
  JournalKind kind;
  std::function<void(TestJournal&)> damage;
  std::string_view states;
  std::string_view findings;
  std::uint32_t end;
};
void recommit(TestJournal& j, LogBlock at, Tid tid, std::uint64_t seconds) {
  BlockRef block = j.source().at(at);
  build_commit(j.format(), tid, {seconds, 0}, 0, block.mutate());
  j.source().put(at, block);
}
// A revoke block with a bad length, its checksum right.
void bad_revoke(TestJournal& j, LogBlock at, Tid tid) {
  BlockRef block = BlockRef::zeros(j.source().block_size());
  BlockHeader{BlockType::revoke, tid}.build(block.mutate());
  set_be<std::uint32_t>(block.mutate(), 12, 0xFFFF'FFF0);
  if (j.format().has_block_checksums()) store_tail_checksum(j.format().seed, block.mutate());
  j.source().put(at, block);
}
const Row kRows[] = {
    {"sound", kV3, [](TestJournal&) {}, "2 replayable, 3 replayable, 4 replayable", "", 5},
    {"last_commit_missing", kV3, [](TestJournal& j) { j.zero(LogBlock{15}); },
     "2 replayable, 3 replayable, 4 incomplete", "", 4},
    {"last_commit_missing_and_data_half_written", kV3,
     [](TestJournal& j) {
       j.zero(LogBlock{15});
       j.zero(LogBlock{13});
       j.flip(LogBlock{11}, 1000);
     },
     "2 replayable, 3 replayable, 4 incomplete", "", 4},
    {"commit_missing_inside", kV3, [](TestJournal& j) { j.zero(LogBlock{10}); },
     "2 replayable, 3 incomplete, 4 corrupt", "transaction-hole unreachable", 3},
    {"descriptor_missing_inside", kV3, [](TestJournal& j) { j.zero(LogBlock{6}); },
     "2 replayable, 3 corrupt, 4 corrupt", "transaction-hole unreachable unreachable", 3},
    {"last_descriptor_missing", kNone, [](TestJournal& j) { j.zero(LogBlock{11}); },
     "2 replayable, 3 replayable, 4 corrupt", "transaction-hole unreachable", 4},
    {"last_descriptor_missing_async", kAsync, [](TestJournal& j) { j.zero(LogBlock{11}); },
     "2 replayable, 3 replayable", "", 4},
    {"last_tag_lost", kNone,  // the descriptor now claims more blocks than it has
     [](TestJournal& j) { j.flip(LogBlock{6}, 12 + 12 + 16 + 12 + 7, tag_flag::kLastTag); },
     "2 replayable, 3 incomplete, 3 corrupt, 4 corrupt", "transaction-hole unreachable unreachable",
     3},
    {"descriptor_checksum", kV3, [](TestJournal& j) { j.flip(LogBlock{6}, 500); },
     "2 replayable, 3 corrupt, 4 corrupt", "descriptor-checksum unreachable", 3},
    {"descriptor_checksum_v2", kV2, [](TestJournal& j) { j.flip(LogBlock{6}, 500); },
     "2 replayable, 3 corrupt, 4 corrupt", "descriptor-checksum unreachable", 3},
    {"descriptor_checksum_of_older_life", kV3,
     [](TestJournal& j) {
       j.flip(LogBlock{6}, 500);
       recommit(j, LogBlock{10}, Tid{3}, 999);
     },
     "2 replayable", "", 3},
    {"descriptor_checksum_first_is_never_older", kV3,
     [](TestJournal& j) {
       j.flip(LogBlock{1}, 500);
       recommit(j, LogBlock{5}, Tid{2}, 0);
     },
     "2 corrupt, 3 corrupt, 4 corrupt", "descriptor-checksum unreachable unreachable", 2},
    {"commit_checksum", kV3, [](TestJournal& j) { j.flip(LogBlock{10}, 17); },
     "2 replayable, 3 corrupt, 4 corrupt", "commit-checksum unreachable", 3},
    {"commit_checksum_of_last", kV3, [](TestJournal& j) { j.flip(LogBlock{15}, 17); },
     "2 replayable, 3 replayable, 4 corrupt", "commit-checksum", 4},
    {"commit_checksum_of_older_life", kV3,
     [](TestJournal& j) {
       recommit(j, LogBlock{10}, Tid{3}, 999);
       j.flip(LogBlock{10}, 17);
     },
     "2 replayable", "", 3},
    {"commit_time_back_with_good_checksum", kV3,
     [](TestJournal& j) { recommit(j, LogBlock{10}, Tid{3}, 999); },
     "2 replayable, 3 replayable, 4 replayable", "", 5},
    {"commit_torn", kV3, [](TestJournal& j) { j.flip(LogBlock{10}, 600); },
     "2 replayable, 3 replayable, 4 replayable", "commit-torn", 5},
    {"data_checksum", kV3, [](TestJournal& j) { j.flip(LogBlock{8}, 600); },
     "2 replayable, 3 corrupt, 4 replayable", "data-checksum", 5},
    {"data_checksum_v2", kV2, [](TestJournal& j) { j.flip(LogBlock{8}, 600); },
     "2 replayable, 3 corrupt, 4 replayable", "data-checksum", 5},
    {"data_not_protected", kNone, [](TestJournal& j) { j.flip(LogBlock{8}, 600); },
     "2 replayable, 3 replayable, 4 replayable", "", 5},
    {"v1_data", kV1, [](TestJournal& j) { j.flip(LogBlock{8}, 600); },
     "2 replayable, 3 corrupt, 4 corrupt", "transaction-checksum unreachable", 3},
    {"v1_descriptor", kV1, [](TestJournal& j) { j.flip(LogBlock{6}, 800); },
     "2 replayable, 3 corrupt, 4 corrupt", "transaction-checksum unreachable", 3},
    {"v1_unused", kV1,
     [](TestJournal& j) {
       for (const std::size_t at : {12U, 13U, 16U, 17U, 18U, 19U}) {
         BlockRef b = j.source().at(LogBlock{10});
         b.mutate()[at] = std::byte{0};
         j.source().put(LogBlock{10}, b);
       }
     },
     "2 replayable, 3 replayable, 4 replayable", "", 5},
    {"async_last_interrupted", kAsync, [](TestJournal& j) { j.flip(LogBlock{15}, 17); },
     "2 replayable, 3 replayable, 4 incomplete", "interrupted", 4},
    {"async_v1_last_interrupted", kAsyncV1, [](TestJournal& j) { j.flip(LogBlock{13}, 17); },
     "2 replayable, 3 replayable, 4 incomplete", "interrupted", 4},
    {"async_commit_followed_by_another", kAsync, [](TestJournal& j) { j.flip(LogBlock{10}, 17); },
     "2 replayable, 3 corrupt, 4 corrupt", "commit-checksum unreachable", 3},
    {"async_v1_followed_by_another", kAsyncV1, [](TestJournal& j) { j.flip(LogBlock{8}, 17); },
     "2 replayable, 3 corrupt, 4 corrupt", "transaction-checksum unreachable", 3},
    {"revoke_count", kV3,
     [](TestJournal& j) {
       bad_revoke(j, LogBlock{16}, Tid{5});
       recommit(j, LogBlock{17}, Tid{5}, 1000);
     },
     "2 replayable, 3 replayable, 4 replayable, 5 corrupt", "revoke-count", 5},
    {"revoke_count_without_commit", kV3,
     [](TestJournal& j) { bad_revoke(j, LogBlock{16}, Tid{5}); },
     "2 replayable, 3 replayable, 4 replayable, 5 incomplete", "", 5},
    {"revoke_checksum", kV3,
     [](TestJournal& j) {
       bad_revoke(j, LogBlock{16}, Tid{5});
       BlockRef b = j.source().at(LogBlock{16});
       set_be<std::uint32_t>(b.mutate(), 12, 16);
       j.source().put(LogBlock{16}, b);
       recommit(j, LogBlock{17}, Tid{5}, 1000);
     },
     "2 replayable, 3 replayable, 4 replayable, 5 corrupt", "revoke-checksum", 5},
    {"unknown_type", kNone,
     [](TestJournal& j) {
       BlockRef b = BlockRef::zeros(1024);
       BlockHeader{static_cast<BlockType>(9), Tid{5}}.build(b.mutate());
       j.source().put(LogBlock{16}, b);
     },
     "2 replayable, 3 replayable, 4 replayable", "unknown-block-type", 5},
    {"leftovers_of_older_tids", kNone,
     [](TestJournal& j) {
       j.set_tid(Tid{1});
       j.add_blocks(2);
     },
     "2 replayable, 3 replayable, 4 replayable", "", 5},
    {"start_elsewhere", kNone,
     [](TestJournal& j) {
       j.superblock().set_sequence(Tid{119});
       j.write_superblock();
     },
     "", "", 119},
};

class Scan : public testing::TestWithParam<Row> {};

TEST_P(Scan, GivesStatesAndFindings) {
  TestJournal journal(GetParam().kind);
  for (int i = 0; i < 3; ++i) journal.add_blocks(3);
  ASSERT_EQ(journal.head(), LogBlock{16});
  GetParam().damage(journal);
  const auto log = journal.read();
  ASSERT_TRUE(log);
  EXPECT_EQ(states(*log), GetParam().states);
  EXPECT_EQ(finding_ids(*log), GetParam().findings);
  EXPECT_EQ(log->end, Tid{GetParam().end});
  for (const LogTransaction& t : log->transactions) {
    EXPECT_EQ(t.before_end, !Tid{t.tid}.after(Tid{GetParam().end - 1})) << t.tid.value();
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, Scan, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ScanDetails, FindingSaysWhereAndWhat) {
  TestJournal journal(kV3);
  journal.add_blocks(3);
  journal.flip(LogBlock{3}, 600);
  const auto log = journal.read();
  ASSERT_TRUE(log);
  ASSERT_EQ(log->findings.size(), 1U);
  const Finding& f = log->findings[0];
  EXPECT_EQ(f.place, (FindingPlace{Tid{2}, LogBlock{3}, FsBlock{101}}));
  EXPECT_EQ(f.severity, Severity::error);
  EXPECT_EQ(f.text.substr(0, 78),
            "a logged block does not match the checksum in its tag: the tag of block 101 sa");
  const LogTransaction& t = log->transactions[0];
  EXPECT_EQ(t.data_checksum, Verdict::bad);
  EXPECT_EQ(t.control_checksum, Verdict::good);
  EXPECT_EQ(t.commit_checksum, Verdict::good);
  EXPECT_EQ(t.blocks[0].checksum, Verdict::good);
  EXPECT_EQ(t.blocks[1].checksum, Verdict::bad);
}

TEST(ScanDetails, TagsThatPointNowhereAreFound) {
  TestJournal journal(kNone);
  journal.add_blocks(3);  // blocks 100, 101, 102
  const LogReadOptions options{
      .fs_block_count = 102,
      .journal_blocks = {{FsBlock{10}, FsBlock{20}}, {FsBlock{99}, FsBlock{101}}}};
  const auto log = journal.read(options);
  ASSERT_TRUE(log);
  EXPECT_EQ(finding_ids(*log), "tag-in-journal tag-out-of-range");
  EXPECT_EQ(log->findings[0].place.fs_block, FsBlock{100});
  EXPECT_EQ(log->findings[1].place.fs_block, FsBlock{102});
  EXPECT_EQ(states(*log), "2 corrupt");
  EXPECT_TRUE(log->transactions[0].before_end);
}

// The image loop_ring: every block of the ring is the same descriptor.
TEST(ScanDetails, LogWithoutEndIsLeft) {
  TestJournal journal(kNone);
  journal.add_blocks(7);
  const BlockRef descriptor = journal.source().at(LogBlock{1});
  for (std::uint32_t b = 1; b < 1100; ++b) journal.source().put(LogBlock{b}, descriptor);
  const auto log = journal.read({.all = true});
  ASSERT_TRUE(log);
  EXPECT_EQ(states(*log), "2 corrupt");
  EXPECT_EQ(finding_ids(*log), "log-loops");
  EXPECT_EQ(log->end, Tid{2});
  EXPECT_LE(log->transactions[0].blocks.size(), 1099U);
}

// A ring that is full to the last block is no loop.
TEST(ScanDetails, FullRingIsSound) {
  TestJournal journal(kNone, Tid{2}, LogBlock{500});
  for (int i = 0; i < 157; ++i) journal.add_blocks(5);  // 157 * 7 = 1099
  ASSERT_EQ(journal.head(), LogBlock{500});
  const auto log = journal.read({.all = true});
  ASSERT_TRUE(log);
  EXPECT_EQ(log->transactions.size(), 157U);
  EXPECT_EQ(finding_ids(*log), "");
  EXPECT_EQ(log->end, Tid{159});
}

TEST(ScanDetails, AllShowsOlderGenerations) {
  TestJournal journal(kV3);
  for (int i = 0; i < 6; ++i) journal.add_blocks(3);  // tids 2 to 7 at 1, 6, ..., 26
  // The log has wrapped: tids 8 and 9 overwrite 2 and the descriptor of 3.
  journal.set_head(LogBlock{1});
  journal.add_blocks(3);
  journal.add_blocks(0);
  journal.superblock().set_start(LogBlock{1});
  journal.superblock().set_sequence(Tid{8});
  journal.write_superblock();
  const auto live = journal.read();
  ASSERT_TRUE(live);
  EXPECT_EQ(states(*live), "8 replayable, 9 replayable");
  const auto all = journal.read({.all = true});
  ASSERT_TRUE(all);
  EXPECT_EQ(states(*all),
            "8 replayable, 9 replayable, 3 stale, 4 stale, 5 stale, 6 stale, 7 stale");
  EXPECT_EQ(finding_ids(*all), "");
  EXPECT_EQ(all->transactions[2].blocks.size(), 0U);  // only its commit block is left
  EXPECT_EQ(all->transactions[2].commit, LogBlock{10});
  EXPECT_EQ(all->transactions[3].blocks.size(), 3U);
}

TEST(ScanDetails, EmptyLogHasOnlyStaleTransactions) {
  TestJournal journal(kV3);
  for (int i = 0; i < 2; ++i) journal.add_blocks(3);
  journal.superblock().set_start(LogBlock{0});
  journal.superblock().set_sequence(Tid{5});
  journal.superblock().set_head(LogBlock{11});
  journal.write_superblock();
  const auto live = journal.read();
  ASSERT_TRUE(live);
  EXPECT_EQ(states(*live), "");
  EXPECT_EQ(live->end, Tid{5});
  EXPECT_EQ(live->end_block, LogBlock{11});
  const auto all = journal.read({.all = true});
  ASSERT_TRUE(all);
  EXPECT_EQ(states(*all), "2 stale, 3 stale");
}

TEST(ScanDetails, UnreadableBlockEndsTheLog) {
  TestJournal journal(kV3);
  for (int i = 0; i < 3; ++i) journal.add_blocks(3);
  // A source that loses block 6.
  class Holed final : public BlockSource {
   public:
    explicit Holed(BlockRefSource& inner) : inner_(inner) {}
    std::uint32_t block_size() const noexcept override { return inner_.block_size(); }
    std::uint32_t block_count() const noexcept override { return inner_.block_count(); }
    Result<ByteSpan> read(LogBlock b) override {
      if (b == LogBlock{6}) return fail(Errc::io, "no sector");
      return inner_.read(b);
    }

   private:
    BlockRefSource& inner_;
  } source(journal.source());
  const auto log = read_log(source);
  ASSERT_TRUE(log);
  EXPECT_EQ(states(*log), "2 replayable");
  EXPECT_EQ(finding_ids(*log), "unreadable-block");
  EXPECT_EQ(log->findings[0].text, "a block of the log cannot be read: no sector");
}

TEST(ScanDetails, FindingsAreBounded) {
  TestJournal journal(kNone);
  journal.add_blocks(100);
  LogReadOptions options{.fs_block_count = 100};
  options.max_findings = 10;
  const auto log = journal.read(options);
  ASSERT_TRUE(log);
  ASSERT_EQ(log->findings.size(), 11U);
  EXPECT_EQ(log->findings.back().kind, &finding::kMoreFindings);
  EXPECT_EQ(log->findings.back().severity, Severity::error);
}

// A journal on a device of its own: its block numbers are those of the device.
TEST(ScanDetails, SuperblockElsewhere) {
  TestJournal journal(kV3, Tid{2}, LogBlock{2});
  journal.superblock().set_first(LogBlock{2});
  journal.write_superblock();
  journal.source().put(LogBlock{1}, journal.source().at(LogBlock{0}));
  journal.zero(LogBlock{0});
  journal.add_blocks(3);
  const auto log = journal.read({.superblock = LogBlock{1}});
  ASSERT_TRUE(log);
  EXPECT_EQ(states(*log), "2 replayable");
  EXPECT_FALSE(journal.read());
}

TEST(Findings, HaveDifferentIdsAndSentences) {
  const auto kinds = finding_kinds();
  EXPECT_EQ(kinds.size(), 36U);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(kinds[i]->id.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"),
              std::string_view::npos);
    EXPECT_FALSE(kinds[i]->sentence.empty());
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(kinds[i]->id, kinds[k]->id);
  }
}

}  // namespace
}  // namespace jbdlab::jbd2
