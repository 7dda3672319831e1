#include "workloads/counters.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::workloads {
namespace {

using Json = nlohmann::ordered_json;
using sim::SimCounters;

// Every key that any phase of any recording has (groundtruth/runs, 97 runs twice).
constexpr std::string_view kRecordedKeys[] = {"bio_flush_only",
                                              "bio_fua_writes",
                                              "bio_preflush_writes",
                                              "bio_read_sectors",
                                              "bio_reads",
                                              "bio_write_sectors",
                                              "bio_writes",
                                              "checkpoint_calls",
                                              "checkpoint_dropped",
                                              "checkpoint_forced",
                                              "checkpoint_transactions",
                                              "checkpoint_written",
                                              "fc_blocks",
                                              "fc_cleanup.fast",
                                              "fc_cleanup.full",
                                              "fc_commit_starts",
                                              "fc_results_rle",
                                              "fc_status_0",
                                              "fc_status_1",
                                              "fc_status_2",
                                              "fc_status_3",
                                              "fc_track.create",
                                              "fc_track.inode",
                                              "fc_track.link",
                                              "fc_track.range",
                                              "fc_track.unlink",
                                              "fdatasync_calls",
                                              "fsync_calls",
                                              "full_commits",
                                              "handles_dirtied_blocks",
                                              "handles_requested_blocks",
                                              "handles_stopped",
                                              "journal_starts.DIR",
                                              "journal_starts.INODE",
                                              "journal_starts.MAP_BLOCKS",
                                              "journal_starts.MISC",
                                              "journal_starts.QUOTA",
                                              "journal_starts.RESERVED",
                                              "journal_starts.TRUNCATE",
                                              "journal_starts.WRITE_PAGE",
                                              "journal_starts.XATTR",
                                              "journal_super_writes",
                                              "log_tail_updates",
                                              "ops.append",
                                              "ops.chmod",
                                              "ops.chown",
                                              "ops.close",
                                              "ops.create",
                                              "ops.fallocate",
                                              "ops.fdatasync",
                                              "ops.fsync",
                                              "ops.link",
                                              "ops.mkdir",
                                              "ops.open",
                                              "ops.read",
                                              "ops.readdir",
                                              "ops.rename",
                                              "ops.rmdir",
                                              "ops.rmxattr",
                                              "ops.setxattr",
                                              "ops.sleepms",
                                              "ops.stat",
                                              "ops.symlink",
                                              "ops.syncfs",
                                              "ops.truncate",
                                              "ops.unlink",
                                              "ops.unlinkopen",
                                              "ops.utime",
                                              "ops.write",
                                              "ops.xchg",
                                              "ops_total",
                                              "rq_flush_completed",
                                              "rq_flush_issued",
                                              "rq_write_issued",
                                              "sectors.block_bitmap",
                                              "sectors.data",
                                              "sectors.fs_meta_other",
                                              "sectors.gdt",
                                              "sectors.inode_bitmap",
                                              "sectors.inode_table",
                                              "sectors.journal_fc",
                                              "sectors.journal_log",
                                              "sectors.journal_super",
                                              "sectors.super",
                                              "sync_commits",
                                              "sync_fs_calls",
                                              "transactions_rle",
                                              "tx_blocks",
                                              "tx_blocks_logged",
                                              "tx_handles"};

const Json* find(const Json& object, std::string_view key) {
  const std::size_t dot = key.find('.');
  const auto found = object.find(std::string(key.substr(0, dot)));
  if (found == object.end() || dot == key.npos) return found == object.end() ? nullptr : &*found;
  return find(*found, key.substr(dot + 1));
}

TEST(Counters, OfNothingNameEveryRecordedCounterWithZero) {
  const Json json = to_json(PhaseCounters{});
  for (const std::string_view key : kRecordedKeys) {
    const Json* const value = find(json, key);
    ASSERT_NE(value, nullptr) << key;
    EXPECT_EQ(*value, key.ends_with("_rle") ? Json::array() : Json(0)) << key;
  }
}

TEST(Counters, BarrierAndMarkAreNoOperations) {
  const Json json = to_json(PhaseCounters{});
  EXPECT_EQ(find(json, "ops.barrier"), nullptr);
  EXPECT_EQ(find(json, "ops.mark"), nullptr);
  EXPECT_EQ(find(json, "ops")->size(), kOpKindCount - 2);
}

// Each counter has a place of its own: set one to 7, and exactly one number of the JSON is 7.
std::vector<std::string> keys_with_seven(const Json& json, const std::string& prefix = "") {
  std::vector<std::string> out;
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      for (const std::string& inner : keys_with_seven(value, prefix + key + "."))
        out.push_back(inner);
    else if (value == 7)
      out.push_back(prefix + key);
  }
  return out;
}
using Names = std::vector<std::string>;

TEST(Counters, TotalsArePrintedUnderTheirNames) {
  for (const sim::NamedTotal& total : sim::kTotals) {
    PhaseCounters c;
    c.sim.*total.member = 7;
    EXPECT_EQ(keys_with_seven(to_json(c)), Names{std::string(total.name)});
  }
}

template <class Enum, class NamesOf>
void expect_printed(sim::EnumArray<Enum> SimCounters::* member, const std::string& prefix,
                    const NamesOf& names, const std::string& suffix = "") {
  for (std::size_t i = 0; i < names.size(); ++i) {
    PhaseCounters c;
    (c.sim.*member)[static_cast<Enum>(i)] = 7;
    EXPECT_EQ(keys_with_seven(to_json(c)), Names{prefix + std::string(names[i]) + suffix});
  }
}

TEST(Counters, ArraysArePrintedUnderTheirNames) {
  expect_printed(&SimCounters::journal_starts, "journal_starts.", sim::kHandleTypeNames);
  expect_printed(&SimCounters::sectors, "sectors.", sim::kSectorClassNames);
  expect_printed(&SimCounters::fc_status, "", sim::kFcStatusNames);
  expect_printed(&SimCounters::fc_track, "fc_track.", sim::kFcTrackNames);
  expect_printed(&SimCounters::fc_track_refused, "fc_track.", sim::kFcTrackNames, "_refused");
}

TEST(Counters, NamesStandAtTheirEnumerators) {
  const auto handle = [](sim::HandleType t) {
    return sim::kHandleTypeNames[static_cast<std::size_t>(t)];
  };
  EXPECT_EQ(handle(sim::HandleType::misc), "MISC");
  EXPECT_EQ(handle(sim::HandleType::truncate), "TRUNCATE");
  EXPECT_EQ(handle(sim::HandleType::ext_convert), "EXT_CONVERT");
  EXPECT_EQ(handle(sim::HandleType::reserved), "RESERVED");
  const auto sector = [](sim::SectorClass c) {
    return sim::kSectorClassNames[static_cast<std::size_t>(c)];
  };
  EXPECT_EQ(sector(sim::SectorClass::journal_fc), "journal_fc");
  EXPECT_EQ(sector(sim::SectorClass::gdt), "gdt");
  EXPECT_EQ(sector(sim::SectorClass::data), "data");
}

sim::TransactionRecord transaction(std::uint32_t tid, std::uint32_t handles, std::uint32_t blocks,
                                   std::uint32_t blocks_logged) {
  return {.tid = Tid{tid},
          .handles = handles,
          .blocks = blocks,
          .blocks_logged = blocks_logged,
          .committed = Time{Duration{tid}}};
}

TEST(Counters, SumsFollowTheirLists) {
  SimCounters c;
  c.add_transaction(transaction(1, 257, 10, 12));
  c.add_transaction(transaction(2, 256, 13, 15));
  c.add_fc_result(sim::FcStatus::ok, 3);
  c.add_fc_result(sim::FcStatus::skipped, 0);
  c.add_fc_result(sim::FcStatus::failed, 2);
  c.add_stopped_handle(47, 4);
  c.add_stopped_handle(31, 1);
  EXPECT_EQ(c.full_commits, 2u);
  EXPECT_EQ(c.tx_handles, 513u);
  EXPECT_EQ(c.tx_blocks, 23u);
  EXPECT_EQ(c.tx_blocks_logged, 27u);
  EXPECT_EQ(c.fc_status[sim::FcStatus::ok], 1u);
  EXPECT_EQ(c.fc_status[sim::FcStatus::failed], 1u);
  EXPECT_EQ(c.fc_blocks, 5u);
  EXPECT_EQ(c.fc_results, (std::vector<std::int32_t>{3, -2, -3}));
  EXPECT_EQ(c.handles_stopped, 2u);
  EXPECT_EQ(c.handles_requested_blocks, 78u);
  EXPECT_EQ(c.handles_dirtied_blocks, 5u);
}

struct RleCase {
  const char* name;
  std::vector<sim::TransactionRecord> transactions;
  std::string_view json;
};
const RleCase kRleCases[] = {
    {"none", {}, "[]"},
    {"one", {transaction(1, 1, 6, 8)}, "[[1,6,8,1]]"},
    {"equal_ones_are_merged_whatever_their_tid",
     {transaction(1, 1, 6, 8), transaction(2, 1, 6, 8), transaction(3, 1, 6, 8)},
     "[[1,6,8,3]]"},
    {"only_neighbours_are_merged",
     {transaction(1, 1, 6, 8), transaction(2, 2, 6, 8), transaction(3, 1, 6, 8)},
     "[[1,6,8,1],[2,6,8,1],[1,6,8,1]]"},
    {"each_number_counts",
     {transaction(1, 1, 6, 8), transaction(2, 1, 5, 8), transaction(3, 1, 5, 9)},
     "[[1,6,8,1],[1,5,8,1],[1,5,9,1]]"},
};
class TransactionsRleTest : public testing::TestWithParam<RleCase> {};
TEST_P(TransactionsRleTest, MergesNeighbours) {
  EXPECT_EQ(transactions_rle(GetParam().transactions).dump(), GetParam().json);
}
INSTANTIATE_TEST_SUITE_P(Counters, TransactionsRleTest, testing::ValuesIn(kRleCases),
                         [](const auto& row) { return row.param.name; });

TEST(Counters, FastCommitResultsAreMerged) {
  EXPECT_EQ(fc_results_rle(std::vector<std::int32_t>{}).dump(), "[]");
  EXPECT_EQ(fc_results_rle(std::vector<std::int32_t>{1, 1, -3, 1, -2, -2}).dump(),
            "[[1,2],[-3,1],[1,1],[-2,2]]");
}

TEST(Counters, TakenInPhasesAddUpToTheWhole) {
  const auto first = [](SimCounters& c) {
    c.add_transaction(transaction(1, 1, 6, 8));
    c.add_fc_result(sim::FcStatus::ok, 2);
    c.bio_writes += 3;
    c.sectors[sim::SectorClass::data] += 8;
    ++c.journal_starts[sim::HandleType::dir];
    ++c.fc_track[sim::FcTrack::range];
  };
  const auto second = [](SimCounters& c) {
    c.add_transaction(transaction(2, 2, 6, 8));
    c.add_fc_result(sim::FcStatus::ineligible, 0);
    c.bio_writes += 4;
    ++c.rq_flush_completed;
    ++c.fc_track_refused[sim::FcTrack::range];
  };
  SimCounters whole, live;
  first(whole);
  second(whole);
  PhaseCounters sum;
  first(live);
  sum += PhaseCounters{.sim = take(live)};
  EXPECT_EQ(live, SimCounters{});
  second(live);
  sum += PhaseCounters{.sim = take(live)};
  EXPECT_EQ(sum.sim, whole);
}

TEST(Counters, OperationsAndBytesAddUp) {
  PhaseCounters a, b;
  a.ops[OpKind::write] = 2;
  a.bytes_written = 8192;
  b.ops[OpKind::write] = 1;
  b.ops[OpKind::read] = 4;
  b.bytes_written = 100;
  b.bytes_read = 5;
  a += b;
  EXPECT_EQ(a.ops_total(), 7u);
  EXPECT_EQ(a.ops[OpKind::write], 3u);
  EXPECT_EQ(a.bytes_written, 8292u);
  EXPECT_EQ(a.bytes_read, 5u);
  EXPECT_EQ(to_json(a)["ops_total"], 7);
}

}  // namespace
}  // namespace jbdlab::workloads
