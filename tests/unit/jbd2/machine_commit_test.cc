// The order of a commit's steps (commit-path.md, section 4), and what its log blocks hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jbd2/log_reader.h"
#include "tests/unit/jbd2/machine_driver.h"

namespace jbdlab::jbd2 {
namespace {

using State = TransactionState;

struct CommitRow {
  const char* name;  // "A commit ..."
  MachineDriver::Setup setup;
  std::uint32_t commits_before;  // of five blocks each
  std::uint32_t blocks;
  std::uint32_t revoked;
  std::uint32_t files_with_data;
  const char* want;
  const char* findings = "";  // of reading the log afterwards
};

constexpr JournalKind k4k{.block_size = 4096, .block_count = 1024};
constexpr JournalKind kNoChecksums{
    .checksums = ChecksumMode::none, .is_64bit = false, .block_size = 4096, .block_count = 4096};
constexpr JournalOptions kNoBarrier{.barrier = false};

const CommitRow kCommits[] = {
    {"first_after_mount_writes_the_superblock_plainly",
     {.kind = k4k},
     0,
     5,
     0,
     0,
     "lock; super 2@1 WSM; unlock; wait updates; log 1: D5; wait log; commit 7 FWFSM"},
    {"second_writes_no_superblock",
     {.kind = k4k},
     1,
     5,
     0,
     0,
     "wait updates; log 8: D5; wait log; commit 14 FWFSM"},
    {"of_nothing_is_a_commit_block",
     {.kind = k4k},
     1,
     0,
     0,
     0,
     "wait updates; wait log; commit 8 FWFSM"},
    {"with_revokes_writes_them_first",
     {.kind = k4k},
     1,
     2,
     3,
     0,
     "wait updates; log 8: R1; log 9: D2; wait log; commit 12 FWFSM"},
    {"of_revokes_only_has_no_descriptor",
     {.kind = k4k},
     1,
     0,
     3,
     0,
     "wait updates; log 8: R1; wait log; commit 9 FWFSM"},
    {"with_509_revokes_has_one_block_of_them",
     {.kind = k4k},
     1,
     1,
     509,
     0,
     "wait updates; log 8: R1; log 9: D1; wait log; commit 11 FWFSM"},
    {"with_510_revokes_has_two_blocks_of_them",
     {.kind = k4k},
     1,
     1,
     510,
     0,
     "wait updates; log 8: R2; log 10: D1; wait log; commit 12 FWFSM"},
    {"with_ordered_data_waits_for_it_after_the_log_is_submitted",
     {.kind = k4k},
     1,
     1,
     1,
     2,
     "wait updates; data 12:0-2 13:0-2; log 8: R1; log 9: D1; wait data; wait log; "
     "commit 11 FWFSM"},
    {"of_253_blocks_has_one_descriptor",
     {.kind = k4k},
     1,
     253,
     0,
     0,
     "wait updates; log 8: D253; wait log; commit 262 FWFSM"},
    {"of_254_blocks_has_two_descriptors",
     {.kind = k4k},
     1,
     254,
     0,
     0,
     "wait updates; log 8: D253; log 262: D1; wait log; commit 264 FWFSM"},
    {"without_checksums_puts_506_tags_into_a_descriptor",
     {.kind = kNoChecksums},
     0,
     509,
     0,
     0,
     "lock; super 2@1 WSM; unlock; wait updates; log 1: D506; log 508: D3; wait log; "
     "commit 512 FWFSM"},
    {"without_barriers_neither_flushes_nor_forces",
     {.kind = k4k, .options = kNoBarrier},
     0,
     1,
     0,
     0,
     "lock; super 2@1 WSM; unlock; wait updates; log 1: D1; wait log; commit 3 WSM"},
    {"goes_on_where_the_last_mount_stopped",
     {.kind = k4k, .head = LogBlock{500}},
     0,
     1,
     0,
     0,
     "lock; super 2@500 WSM; unlock; wait updates; log 500: D1; wait log; commit 502 FWFSM"},
    {"wraps_at_the_end_of_the_ring",
     {.kind = k4k, .head = LogBlock{1020}},
     0,
     5,
     0,
     0,
     "lock; super 2@1020 WSM; unlock; wait updates; log 1020: D5; wait log; commit 3 FWFSM"},
    {"begins_at_the_front_if_the_head_is_outside_the_ring",
     {.kind = k4k, .head = LogBlock{1024}},
     0,
     1,
     0,
     0,
     "lock; super 2@1 WSM; unlock; wait updates; log 1: D1; wait log; commit 3 FWFSM",
     "head-out-of-range"},
    {"of_the_last_tid",
     {.kind = k4k, .sequence = Tid{0xFFFF'FFFE}},
     0,
     1,
     0,
     0,
     "lock; super 4294967295@1 WSM; unlock; wait updates; log 1: D1; wait log; commit 3 FWFSM"},
    {"of_tid_0",
     {.kind = k4k, .sequence = Tid{0xFFFF'FFFF}},
     0,
     1,
     0,
     0,
     "lock; super 0@1 WSM; unlock; wait updates; log 1: D1; wait log; commit 3 FWFSM"},
};

class Commit : public testing::TestWithParam<CommitRow> {};

TEST_P(Commit, HasTheStepsOfTheKernel) {
  const CommitRow& row = GetParam();
  MachineDriver driver(row.setup);
  Journal& journal = driver.journal();
  for (std::uint32_t n = 0; n < row.commits_before; ++n) {
    driver.change({FsBlock{1}, FsBlock{2}, FsBlock{3}, FsBlock{4}, FsBlock{5}}, 1);
    driver.commit();
  }
  driver.steps.clear();
  const Tid tid = journal.next_tid();
  const std::uint32_t free_before = journal.free_blocks();

  Handle handle;
  driver.start(handle, {.credits = row.blocks, .revoke_records = row.revoked});
  for (std::uint32_t n = 0; n < row.revoked; ++n) driver.free(handle, FsBlock{10'000 + n});
  for (std::uint32_t n = 0; n < row.blocks; ++n) driver.write(handle, FsBlock{100 + n}, n);
  for (std::uint32_t n = 0; n < 2 * row.files_with_data; ++n) {
    driver.order_data(handle, {Ino{12 + n / 2}, LogicalBlock{n % 2}}, FsBlock{20'000 + n}, n);
  }
  driver.stop(handle);
  driver.commit();
  EXPECT_EQ(driver.steps_joined(), row.want);
  EXPECT_EQ(journal.commit_sequence(), tid);
  EXPECT_EQ(journal.committing(), nullptr);

  BlockRefSource source = journal_of(driver.disk().now(), driver.kind());
  const auto log = read_log(source);
  ASSERT_TRUE(log);
  EXPECT_EQ(finding_ids(*log), row.findings);
  ASSERT_EQ(log->transactions.size(), row.commits_before + 1);
  const LogTransaction& read = log->transactions.back();
  EXPECT_EQ(read.tid, tid);
  EXPECT_EQ(read.state, LogState::replayable);
  EXPECT_EQ(read.blocks.size(), row.blocks);
  EXPECT_EQ(read.revoked.size(), row.revoked);
  EXPECT_EQ(log->end_block, journal.head());
  EXPECT_EQ(free_before - journal.free_blocks(), read.blocks.size() + read.control.size());
  // The data that this commit promises is on the medium, whatever a crash leaves of the cache.
  Random dice(1);
  for (std::uint32_t n = 0; n < 2 * row.files_with_data; ++n) {
    EXPECT_EQ(value_of(driver.disk().crashed(dice)[TestDisk::home(FsBlock{20'000 + n})]), n);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Commit, testing::ValuesIn(kCommits),
                         [](const auto& row) { return std::string(row.param.name); });

// The states in which its steps find a transaction, and who is running meanwhile.
TEST(CommitStates, ComeInTheKernelsOrder) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Handle handle;
  driver.start(handle, {.credits = 1});
  driver.write(handle, FsBlock{7}, 1);
  driver.order_data(handle, {Ino{12}, LogicalBlock{0}}, FsBlock{90}, 1);
  const Transaction* const transaction = handle.transaction;
  driver.stop(handle);

  struct Row {
    const char* step;
    State state;
    bool running;  // not yet committing
  };
  constexpr Row kRows[] = {
      {"lock", State::running, true},          {"super", State::running, true},
      {"unlock", State::running, true},        {"wait updates", State::locked, true},
      {"data", State::flush, false},           {"log", State::commit, false},
      {"wait data", State::commit, false},     {"wait log", State::commit_dflush, false},
      {"commit", State::commit_jflush, false},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.step);
    driver.advance_commit_to(row.step);
    EXPECT_EQ(transaction->state, row.state);
    EXPECT_EQ(journal.running(), row.running ? transaction : nullptr);
    EXPECT_EQ(journal.committing(), row.running ? nullptr : transaction);
    EXPECT_FALSE(journal.committed(Tid{2}));
  }
  driver.commit();
  EXPECT_EQ(transaction->state, State::finished);  // on the checkpoint list: block 7 is not home
  EXPECT_TRUE(journal.committed(Tid{2}));
  EXPECT_EQ(journal.transactions_listed(), 1U);
}

TEST(CommitWaits, UntilTheLastHandleHasStopped) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Handle first, second, late;
  driver.start(first, {.credits = 1});
  driver.start(second, {.credits = 1});
  driver.stop(first);
  driver.advance_commit_to("wait updates");
  EXPECT_FALSE(journal.updates_finished());
  EXPECT_EQ(driver.advance_commit(), MachineDriver::Progress::waits);
  // Nobody joins a locked transaction any more.
  journal.prepare(late, {.credits = 1});
  EXPECT_EQ(journal.start(late, driver.now()), Journal::Start::wait_transaction);
  driver.write(second, FsBlock{1}, 1);  // but those inside go on
  driver.wakes.clear();
  driver.stop(second);
  EXPECT_EQ(driver.wakes, std::vector{Wake::updates_finished});
  driver.wakes.clear();
  driver.advance_commit_to("log");
  EXPECT_EQ(driver.wakes, std::vector{Wake::transaction});
  // From here on the next transaction lives beside the one that commits.
  EXPECT_EQ(journal.start(late, driver.now()), Journal::Start::started);
  EXPECT_EQ(late.transaction->tid, Tid{3});
  EXPECT_EQ(journal.committing()->tid, Tid{2});
  driver.stop(late);
  driver.wakes.clear();
  driver.commit();
  EXPECT_EQ(driver.wakes, (std::vector{Wake::buffer, Wake::commit_done}));
}

// Between the end of the wait and the next step a reserved handle may still join.
TEST(CommitWaits, AgainForAReservedHandleThatJoins) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Handle handle, reserved;
  journal.prepare(reserved, {.credits = 1});
  handle.reserved = &reserved;
  driver.start(handle, {.credits = 1, .reserved = 1});
  Journal::detach_reserved(handle);
  driver.stop(handle);
  driver.advance_commit_to("wait updates");
  EXPECT_EQ(driver.advance_commit(), MachineDriver::Progress::moved);  // nobody is inside
  ASSERT_EQ(journal.start_reserved(reserved, driver.now()), Journal::Start::started);
  EXPECT_EQ(reserved.transaction->tid, Tid{2});
  driver.advance_commit_to("wait updates");
  EXPECT_EQ(driver.advance_commit(), MachineDriver::Progress::waits);
  driver.write(reserved, FsBlock{1}, 1);
  driver.stop(reserved);
  driver.commit();
  EXPECT_EQ(driver.steps.at(5), "log 1: D1");
}

// The two vectors of WriteLog run side by side; only images have buffers, and these are shadowed
// until their write is over.
TEST(CommitLogWrites, NameTheBufferOfEachImage) {
  MachineDriver driver({.kind = k4k});
  Handle handle;
  driver.start(handle, {.credits = 2, .revoke_records = 1});
  driver.free(handle, FsBlock{3});
  driver.write(handle, FsBlock{8}, 1);
  driver.write(handle, FsBlock{5}, 2);
  driver.stop(handle);
  driver.advance_commit_to("log 1: R1");
  {
    const auto& revokes = std::get<step::WriteLog>(driver.commit_step());
    ASSERT_EQ(revokes.writes.size(), 1U);
    EXPECT_EQ(revokes.buffers, std::vector<BufferHead*>{nullptr});
  }
  driver.advance_commit_to("log 2: D2");
  const auto& images = std::get<step::WriteLog>(driver.commit_step());
  ASSERT_EQ(images.writes.size(), 3U);
  EXPECT_EQ(images.buffers, (std::vector<BufferHead*>{nullptr, &driver.buffer(FsBlock{8}),
                                                      &driver.buffer(FsBlock{5})}));
  EXPECT_EQ(value_of(images.writes[1].contents), 1U);
  EXPECT_EQ(value_of(images.writes[2].contents), 2U);
  EXPECT_TRUE(driver.buffer(FsBlock{8}).shadow);
  driver.complete_log_write_of(driver.buffer(FsBlock{8}));
  EXPECT_FALSE(driver.buffer(FsBlock{8}).shadow);
  EXPECT_TRUE(driver.buffer(FsBlock{5}).shadow);
  driver.commit();
}

// Tags stand in the order of first dirtying, whoever got access first or dirtied again last.
TEST(CommitLogWrites, StandInTheOrderOfFirstDirtying) {
  MachineDriver driver({.kind = k4k});
  Handle handle;
  driver.start(handle, {.credits = 3});
  for (const std::uint64_t b : {30U, 10U, 20U}) {
    driver.journal().get_write_access(handle, driver.buffer(FsBlock{b}));
  }
  for (const std::uint64_t b : {20U, 30U, 20U, 10U, 30U}) driver.write(handle, FsBlock{b}, b);
  driver.stop(handle);
  driver.commit();
  BlockRefSource source = journal_of(driver.disk().now(), driver.kind());
  const auto log = read_log(source);
  ASSERT_TRUE(log);
  std::vector<std::uint64_t> order;
  for (const LoggedBlock& b : log->transactions.at(0).blocks) order.push_back(b.fs_block.value());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{20, 30, 10}));
}

// An access that changed nothing costs the log nothing.
TEST(CommitLogWrites, AreOnlyForWhatWasDirtied) {
  MachineDriver driver({.kind = k4k});
  Handle handle;
  driver.start(handle, {.credits = 2});
  driver.journal().get_write_access(handle, driver.buffer(FsBlock{1}));
  driver.write(handle, FsBlock{2}, 1);
  driver.stop(handle);
  driver.commit();
  EXPECT_EQ(driver.steps.at(4), "log 1: D1");
  EXPECT_EQ(driver.buffer(FsBlock{1}).transaction, nullptr);
  EXPECT_FALSE(driver.buffer(FsBlock{1}).dirty);
  EXPECT_TRUE(driver.buffer(FsBlock{2}).dirty);  // to be written home, from now on
}

// The commit block tells the coarse clock: whole ticks since the epoch.
TEST(CommitTimeOf, TheCommitBlockIsTheTickItWasBuiltIn) {
  using namespace std::chrono_literals;
  MachineDriver driver({.kind = k4k, .options = {.epoch_seconds = 1'000'000, .clock_tick = 4ms}});
  driver.change({FsBlock{1}}, 1);
  driver.advance_commit_to("log");
  driver.set_now(Time(3s + 123'456'789ns));
  driver.commit();
  BlockRefSource source = journal_of(driver.disk().now(), driver.kind());
  const auto log = read_log(source);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->transactions.at(0).time, (CommitTime{1'000'003, 120'000'000}));
}

}  // namespace
}  // namespace jbdlab::jbd2
