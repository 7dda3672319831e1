// What a log adds up to, on logs written down here; the corpus tests hold real ones against `log`.
#include "analyze/stats.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyze/stats_print.h"

namespace jbdlab::analyze {
namespace {

using jbd2::LogState;
using nlohmann::json;

constexpr std::uint64_t kSecond = 1'000'000'000;

struct Percentiles {
  const char* name;
  std::vector<std::uint64_t> values;
  Distribution want;
};
class Distributions : public testing::TestWithParam<Percentiles> {};

TEST_P(Distributions, AreOfNearestRank) {
  EXPECT_EQ(Distribution::of(GetParam().values), GetParam().want);
}

std::vector<std::uint64_t> one_to(std::uint64_t last) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = last; i > 0; --i) values.push_back(i);
  return values;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Distributions,
    testing::Values(Percentiles{"of_nothing", {}, {}},
                    Percentiles{"of_one", {7}, {1, 7, 7, 7, 7, 7, 7}},
                    Percentiles{"of_two_take_the_lower_as_median", {9, 1}, {2, 10, 1, 1, 9, 9, 9}},
                    Percentiles{"of_ten", one_to(10), {10, 55, 1, 5, 9, 10, 10}},
                    Percentiles{
                        "of_two_hundred", one_to(200), {200, 20'100, 1, 100, 180, 198, 200}},
                    Percentiles{"saturate",
                                {std::numeric_limits<std::uint64_t>::max(), 1},
                                {2, std::numeric_limits<std::uint64_t>::max(), 1, 1,
                                 std::numeric_limits<std::uint64_t>::max(),
                                 std::numeric_limits<std::uint64_t>::max(),
                                 std::numeric_limits<std::uint64_t>::max()}}),
    [](const auto& row) { return row.param.name; });

// A transaction of these blocks, with one descriptor and one commit block.
jbd2::LogTransaction transaction(std::uint32_t tid, LogState state, std::uint64_t seconds,
                                 std::vector<std::uint64_t> blocks) {
  jbd2::LogTransaction t;
  t.tid = Tid{tid};
  t.first = LogBlock{tid * 10};
  t.commit = LogBlock{tid * 10 + 9};
  t.time = jbd2::CommitTime{seconds, 0};
  t.state = state;
  t.before_end = state == LogState::replayable;
  t.control = {{.log_block = t.first, .type = jbd2::BlockType::descriptor},
               {.log_block = *t.commit, .type = jbd2::BlockType::commit}};
  for (const std::uint64_t block : blocks) {
    t.blocks.push_back({.fs_block = FsBlock{block}, .log_block = LogBlock{1}});
  }
  return t;
}

LogReport report_of(std::vector<jbd2::LogTransaction> transactions) {
  jbd2::LogSuperblock superblock = jbd2::LogSuperblock::create({});
  superblock.set_start(LogBlock{20});
  superblock.set_sequence(Tid{2});
  LogReport report{
      .location = {},
      .block_size = 4096,
      .needs_recovery = {},
      .contents = {.superblock = superblock,
                   .format = jbd2::LogFormat::of(superblock),
                   .geometry = {LogBlock{1}, LogBlock{101}, LogBlock{102}, LogBlock{111}},
                   .transactions = std::move(transactions),
                   .fast_commits = {},
                   .findings = {},
                   .end = Tid{6},
                   .end_block = LogBlock{60}},
      .whole = true,
      .kinds = {},
      .history = {},
      .findings = {}};
  // Block 5 is of the inode table, all others are directories.
  for (const auto& t : report.contents.transactions) {
    auto& kinds = report.kinds.emplace_back();
    for (const auto& block : t.blocks) {
      kinds.push_back(block.fs_block == FsBlock{5} ? BlockKind::inode_table : BlockKind::dir);
    }
  }
  return report;
}

LogReport sample() {
  LogReport log = report_of({transaction(2, LogState::replayable, 100, {5, 7}),
                             transaction(3, LogState::replayable, 103, {5}),
                             transaction(4, LogState::replayable, 102, {5, 8, 9}),
                             transaction(5, LogState::corrupt, 104, {5, 5, 5}),
                             transaction(1, LogState::stale, 50, {7})});
  log.contents.transactions[1].revoked = {{FsBlock{30}, LogBlock{1}}, {FsBlock{31}, LogBlock{1}}};
  log.contents.transactions[1].control.push_back(
      {.log_block = LogBlock{31}, .type = jbd2::BlockType::revoke});
  jbd2::LogFastCommit fast;
  fast.tid = Tid{6};
  fast.log_block = LogBlock{102};
  fast.blocks = 2;
  fast.state = LogState::replayable;
  fast.tags.resize(3);
  fast.tags[0].tag = jbd2::FcTag::head;
  fast.tags[1].tag = jbd2::FcTag::inode;
  fast.tags[2].tag = jbd2::FcTag::tail;
  log.contents.fast_commits = {fast, fast};
  log.contents.fast_commits[1].state = LogState::incomplete;
  return log;
}

std::uint64_t of_kind(const std::array<std::uint64_t, kBlockKindCount>& counts, BlockKind kind) {
  return counts[static_cast<std::size_t>(kind)];
}

TEST(Stats, CountWhatRecoveryTakesAndWholeOldTransactions) {
  const StatsReport stats = stats_of(sample());
  EXPECT_EQ(stats.transactions, 4U);
  EXPECT_EQ(stats.transactions_left_out, 1U);
  EXPECT_EQ(stats.blocks, 7U);
  EXPECT_EQ(stats.blocks_logged, 16U);  // two control blocks each, and a revoke block
  EXPECT_EQ(stats.revokes, 2U);
  EXPECT_EQ(stats.fast_commits, 1U);
  EXPECT_EQ(stats.fast_commit_blocks, 2U);
  EXPECT_EQ(stats.fast_commits_left_out, 1U);
  EXPECT_EQ(stats.fast_commit_tags, (std::vector<std::uint64_t>{0, 0, 0, 0, 0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(of_kind(stats.by_kind, BlockKind::inode_table), 3U);
  EXPECT_EQ(of_kind(stats.by_kind, BlockKind::dir), 4U);
  EXPECT_EQ(of_kind(stats.distinct_by_kind, BlockKind::inode_table), 1U);
  EXPECT_EQ(of_kind(stats.distinct_by_kind, BlockKind::dir), 3U);
}

TEST(Stats, LeaveOutATransactionOfWhichNoCommitBlockIsLeft) {
  LogReport log = sample();
  log.contents.transactions[4].commit.reset();
  EXPECT_EQ(stats_of(log).transactions, 3U);
  EXPECT_EQ(stats_of(log).transactions_left_out, 1U);  // old remains are nothing left out
}

TEST(Stats, SayHowOftenABlockIsLoggedAgain) {
  const StatsReport stats = stats_of(sample());
  EXPECT_EQ(stats.distinct_blocks, 4U);
  EXPECT_EQ(stats.write_amplification(), 4.0);
  EXPECT_EQ(stats.times_logged, (Distribution{4, 7, 1, 1, 3, 3, 3}));
  ASSERT_EQ(stats.hottest.size(), 2U);
  EXPECT_EQ(stats.hottest[0].fs_block, FsBlock{5});
  EXPECT_EQ(stats.hottest[0].times_logged, 3U);
  EXPECT_EQ(stats.hottest[1].fs_block, FsBlock{7});
  EXPECT_EQ(stats_of(report_of({})).write_amplification(), std::nullopt);
}

TEST(Stats, SendNoBlockHomeThatIsRevokedAfterItsLastCopy) {
  LogReport log = sample();
  EXPECT_EQ(stats_of(log).home_blocks, 4U);
  // Of 5, there is a younger copy; of 7, only older ones; 8 is logged in the transaction behind it.
  for (const std::uint64_t block : {5U, 7U, 8U}) {
    log.contents.transactions[1].revoked.push_back({FsBlock{block}, LogBlock{1}});
  }
  const StatsReport stats = stats_of(log);
  EXPECT_EQ(stats.home_blocks, 3U);
  EXPECT_EQ(stats.distinct_blocks, 4U);
  EXPECT_EQ(stats.write_amplification(), 16.0 / 3);
}

TEST(Stats, TakeIntervalsWhereTimeGoesOn) {
  const StatsReport stats = stats_of(sample());
  ASSERT_EQ(stats.commits.size(), 4U);
  EXPECT_EQ(stats.commits[0].interval_ns, std::nullopt);
  EXPECT_EQ(stats.commits[1].interval_ns, 3 * kSecond);
  EXPECT_EQ(stats.commits[2].interval_ns, std::nullopt);  // the clock was set back
  EXPECT_EQ(stats.rate.times_set_back, 1U);
  EXPECT_EQ(stats.commits[3].interval_ns, std::nullopt);  // another life of the ring
  EXPECT_EQ(stats.commit_interval_ns.count, 1U);
}

TEST(Stats, SliceTheTimeBetweenFirstAndLastCommit) {
  const CommitRate rate = stats_of(sample()).rate;
  EXPECT_EQ(rate.first_ns, 50 * kSecond);
  EXPECT_EQ(rate.last_ns, 103 * kSecond);
  EXPECT_EQ(rate.slice_ns, 5 * kSecond);
  ASSERT_EQ(rate.slices.size(), 11U);
  EXPECT_EQ(rate.slices[0].transactions, 1U);
  EXPECT_EQ(rate.slices[10].begin_ns, 100 * kSecond);
  EXPECT_EQ(rate.slices[10].transactions, 3U);
  EXPECT_EQ(rate.slices[10].blocks_logged, 13U);
}

TEST(Stats, SliceAnySpanOfTime) {
  const auto with_times = [](std::uint64_t first_s, std::uint64_t last_s) {
    return stats_of(report_of({transaction(2, LogState::replayable, first_s, {5}),
                               transaction(3, LogState::replayable, last_s, {5})}))
        .rate;
  };
  EXPECT_EQ(with_times(7, 7).slices.size(), 1U);
  EXPECT_EQ(with_times(0, 20).slice_ns, 2 * kSecond);
  const CommitRate longest = with_times(0, std::numeric_limits<std::uint32_t>::max() * 4ULL);
  EXPECT_LE(longest.slices.size(), CommitRate::kSlicesMax);
  EXPECT_EQ(longest.slices.back().transactions, 1U);
}

struct RingRow {
  const char* name;
  std::uint32_t start, end_block;
  bool taken;
  std::uint32_t want;
};
class RingFill : public testing::TestWithParam<RingRow> {};

TEST_P(RingFill, IsWhatRecoveryWalks) {
  const RingRow& row = GetParam();
  LogReport log = report_of(
      {transaction(2, row.taken ? LogState::replayable : LogState::incomplete, 100, {5})});
  log.contents.superblock.set_start(LogBlock{row.start});
  log.contents.end_block = LogBlock{row.end_block};
  EXPECT_EQ(stats_of(log).ring.used, row.want);
  EXPECT_EQ(stats_of(log).ring.blocks, 100U);
}

INSTANTIATE_TEST_SUITE_P(Rows, RingFill,
                         testing::Values(RingRow{"in_the_middle", 20, 60, true, 40},
                                         RingRow{"wrapped", 90, 11, true, 21},
                                         RingRow{"full", 20, 20, true, 100},
                                         RingRow{"nothing_taken", 20, 20, false, 0},
                                         RingRow{"empty", 0, 20, false, 0}),
                         [](const auto& row) { return row.param.name; });

std::string printed(const std::function<void(const Sink&)>& print) {
  std::string text;
  print([&](std::string_view piece) { text += piece; });
  return text;
}

TEST(StatsPrinted, AsJsonHaveTheKeysOfTheContract) {
  const StatsReport stats = stats_of(sample());
  const json document =
      json::parse(printed([&](const Sink& s) { write_stats_json(stats, "image", s); }));
  EXPECT_EQ(document.at("schema"), "jbdlab.stats/1");
  EXPECT_EQ(document.at("image"), "image");
  const json& totals = document.at("totals");
  EXPECT_EQ(totals.at("transactions"), 4);
  EXPECT_EQ(totals.at("blocks"), 7);
  EXPECT_EQ(totals.at("blocks_logged"), 16);
  EXPECT_EQ(totals.at("revokes"), 2);
  EXPECT_EQ(totals.at("fast_commits"), 1);
  EXPECT_EQ(totals.at("fast_commit_blocks"), 2);
  EXPECT_EQ(document.at("by_kind").size(), kBlockKindCount);
  EXPECT_EQ(document.at("by_kind").at("inode_table"), 3);
  EXPECT_EQ(document.at("distributions").at("blocks_per_commit").at("max"), 3);
  EXPECT_EQ(document.at("distributions").at("bytes_per_commit").at("max"), 5 * 4096);
  EXPECT_EQ(document.at("rate").at("span_ns"), 53 * kSecond);
  EXPECT_EQ(document.at("ring"), (json{{"blocks", 100}, {"used", 40}}));
  EXPECT_EQ(document.at("fast_commit_area"), (json{{"blocks", 9}, {"used", 2}}));
  EXPECT_EQ(document.at("fast_commit_tags").at("inode"), 1);
}

TEST(StatsPrinted, AsCsvAreARowForEachCommit) {
  const StatsReport stats = stats_of(sample());
  EXPECT_EQ(printed([&](const Sink& s) { write_stats_csv(stats, s); }),
            "tid,state,log_block,commit_time_ns,interval_ns,blocks,blocks_logged,bytes,revokes,"
            "super,gdt,block_bitmap,inode_bitmap,inode_table,dir,extent,xattr,orphan_file,data,"
            "unknown\n"
            "2,replayable,20,100000000000,,2,4,16384,0,0,0,0,0,1,1,0,0,0,0,0\n"
            "3,replayable,30,103000000000,3000000000,1,4,16384,2,0,0,0,0,1,0,0,0,0,0,0\n"
            "4,replayable,40,102000000000,,3,5,20480,0,0,0,0,0,1,2,0,0,0,0,0\n"
            "1,stale,10,50000000000,,1,3,12288,0,0,0,0,0,0,1,0,0,0,0,0\n");
}

TEST(StatsPrinted, AsTextFitTheScreen) {
  LogReport log = sample();
  for (auto& t : log.contents.transactions) {
    for (auto& block : t.blocks) {
      block.fs_block = FsBlock{block.fs_block.value() + 281'474'976'000'000};
    }
  }
  log.contents.fast_commits[0].tags.assign(1'000'000, log.contents.fast_commits[0].tags[1]);
  const StatsReport stats = stats_of(log);
  const std::string text =
      printed([&](const Sink& s) { write_stats_text(stats, "image", {.color = false}, s); });
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    EXPECT_LE(end - begin, 100U) << text.substr(begin, end - begin);
    begin = end + 1;
  }
  EXPECT_EQ(begin, text.size());
  EXPECT_NE(text.find("  Ring             40 of 100 blocks used (40.0 %)\n"), std::string::npos);
  EXPECT_NE(text.find("  4.00: 16 blocks in the ring for 4 that go home"), std::string::npos)
      << text;
  EXPECT_NE(text.find("went back 1 time\n"), std::string::npos);
}

}  // namespace
}  // namespace jbdlab::analyze
