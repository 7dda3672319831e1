// Handles and credits: what fills a transaction (commit-path.md, section 2), and what starts or
// awaits a commit (sections 3 and 7).
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "tests/unit/jbd2/machine_driver.h"

namespace jbdlab::jbd2 {
namespace {

using namespace std::chrono_literals;
using Start = Journal::Start;

constexpr JournalKind k4k{.block_size = 4096, .block_count = 1024};  // MAX 341, overhead 3
constexpr std::uint32_t kMax = 341, kOverhead = 3;
constexpr std::uint32_t kRevokes = 8;  // what ext4 asks for by default: one credit

struct GeometryRow {
  const char* name;
  JournalKind kind;
  std::uint32_t divisor;
  std::uint32_t max;       // j_max_transaction_buffers
  std::uint32_t overhead;  // of a new transaction
};
// MAX is held against kernels in commit-path.md, section 1; so are the overheads 3 and 23.
constexpr GeometryRow kGeometries[] = {
    {"ring_of_1024", k4k, 3, 341, 3},
    {"ring_of_4096", {.block_size = 4096, .block_count = 4096}, 3, 1365, 7},
    // 2533 tags: eleven descriptors of 253, though ten would do if the kernel counted 254.
    {"ring_of_7600", {.block_size = 4096, .block_count = 7600}, 3, 2533, 12},
    {"ring_of_8192", {.block_size = 4096, .block_count = 8192}, 3, 2730, 12},
    {"ring_of_16384", {.block_size = 4096, .block_count = 16384}, 3, 5461, 23},
    {"ring_of_16384_with_a_fast_commit_area",
     {.block_size = 4096, .fast_commit_blocks = 256, .block_count = 16640},
     3,
     5461,
     23},
    {"ring_of_16384_before_6_11", {.block_size = 4096, .block_count = 16384}, 4, 4096, 18},
    {"small_blocks", {.block_size = 1024, .block_count = 4096}, 3, 1365, 24},
    {"no_checksums",
     {.checksums = ChecksumMode::none, .is_64bit = false, .block_size = 4096, .block_count = 4096},
     3,
     1365,
     4},
};

class TransactionSize : public testing::TestWithParam<GeometryRow> {};

TEST_P(TransactionSize, IsAPartOfTheLog) {
  MachineDriver driver(
      {.kind = GetParam().kind, .options = {.transaction_divisor = GetParam().divisor}});
  EXPECT_EQ(driver.journal().max_transaction_blocks(), GetParam().max);
  Handle handle;
  driver.start(handle, {.credits = 10});
  EXPECT_EQ(handle.transaction->outstanding_credits, GetParam().overhead + 10);
  driver.stop(handle);
}

INSTANTIATE_TEST_SUITE_P(Rows, TransactionSize, testing::ValuesIn(kGeometries),
                         [](const auto& row) { return std::string(row.param.name); });

struct FillRow {
  const char* name;
  std::uint32_t credits;  // of each step, without the one for revokes
  std::uint32_t blocks;   // dirtied when the transaction closes
};
// One thread, each handle dirties one block more: N = MAX - overhead - c + 1 when it closes. The
// kernel's figures.
constexpr FillRow kFills[] = {
    {"creates", 46, 292},
    {"unlinks_with_their_evictions", 29, 309},
    {"changes_of_mode", 2, 336},
};

class Fill : public testing::TestWithParam<FillRow> {};

TEST_P(Fill, ClosesTheTransactionByGrantedCredits) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  for (std::uint32_t n = 0;; ++n) {
    ASSERT_LT(n, kMax);
    Handle handle;
    journal.prepare(handle, {.credits = GetParam().credits, .revoke_records = kRevokes});
    EXPECT_EQ(handle.requested_credits, GetParam().credits + 1);
    const Start result = journal.start(handle, driver.now());
    if (result != Start::started) {
      EXPECT_EQ(result, Start::wait_transaction);
      EXPECT_EQ(n, GetParam().blocks);
      break;
    }
    EXPECT_FALSE(journal.commit_wanted());
    driver.write(handle, FsBlock{100 + n}, 1);
    driver.write(handle, FsBlock{100 + n}, 2);  // the second time costs nothing
    EXPECT_EQ(handle.used(), 1);
    driver.stop(handle);
    EXPECT_EQ(journal.running()->outstanding_credits, kOverhead + n + 1);
  }
  EXPECT_TRUE(journal.commit_wanted());  // whoever found it full has asked
  EXPECT_EQ(journal.commit_request(), Tid{2});
  driver.commit();
  EXPECT_EQ(driver.journal().space_left(),
            1023 - 32 - (GetParam().blocks + 2 + 1));  // two descriptors, one commit block
}

INSTANTIATE_TEST_SUITE_P(Rows, Fill, testing::ValuesIn(kFills),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Credits, AreOneForEachBlockOfATransaction) {
  MachineDriver driver({.kind = k4k});
  Handle first, second;
  driver.start(first, {.credits = 3});
  driver.write(first, FsBlock{1}, 1);
  driver.start(second, {.credits = 3});
  driver.write(second, FsBlock{1}, 2);  // dirtied by the other one already
  driver.write(second, FsBlock{2}, 2);
  EXPECT_EQ(first.used(), 1);
  EXPECT_EQ(second.used(), 1);
  driver.stop(first);
  driver.stop(second);
  driver.advance_commit_to("log");
  Handle later;  // a new transaction pays again, though the old one is still being written
  driver.start(later, {.credits = 3});
  driver.complete_log_write_of(driver.buffer(FsBlock{1}));
  driver.write(later, FsBlock{1}, 3);
  EXPECT_EQ(later.used(), 1);
  driver.stop(later);
  driver.commit();
}

TEST(Credits, OfTheLargestHandleFitAnEmptyTransactionAlone) {
  MachineDriver driver({.kind = k4k});
  Handle largest, one;
  driver.start(largest, {.credits = kMax - kOverhead});
  driver.journal().prepare(one, {.credits = 1});
  EXPECT_EQ(driver.journal().start(one, driver.now()), Start::wait_transaction);
  EXPECT_EQ(largest.transaction->tid, Tid{2});
  driver.stop(largest);
  // Nothing was dirtied and all is given back; but the commit has been asked for.
  EXPECT_EQ(driver.journal().running()->outstanding_credits, kOverhead);
  EXPECT_TRUE(driver.journal().commit_wanted());
  EXPECT_EQ(driver.journal().start(one, driver.now()), Start::started);
  driver.stop(one);
}

struct RevokeRow {
  const char* name;
  std::uint32_t first, second;  // records that two handles of 509 records each add
  std::int64_t kept_1, kept_2;  // credits that stay taken for revoke blocks
};
constexpr RevokeRow kRevokeRows[] = {
    {"none", 0, 0, 0, 0},
    {"the_first_takes_a_block", 1, 0, 1, 1},
    {"the_second_uses_what_is_left_of_it", 1, 508, 1, 1},
    {"the_510th_takes_another_block", 1, 509, 1, 2},
    {"a_full_block_each", 509, 509, 1, 2},
};

class RevokeCredits : public testing::TestWithParam<RevokeRow> {};

TEST_P(RevokeCredits, StayTakenAsFarAsRecordsFillBlocks) {
  MachineDriver driver({.kind = k4k});
  const Handle::Request request{.credits = 5, .revoke_records = 509};
  std::uint64_t next = 1000;
  const auto run = [&](std::uint32_t records) {
    Handle handle;
    driver.start(handle, request);
    EXPECT_EQ(handle.requested_credits, 6U);
    for (std::uint32_t n = 0; n < records; ++n) driver.free(handle, FsBlock{next++});
    EXPECT_EQ(handle.revoke_credits, 509 - records);
    EXPECT_EQ(handle.used(), 0);
    const Transaction* const transaction = handle.transaction;
    driver.stop(handle);
    return transaction->outstanding_credits - kOverhead;
  };
  EXPECT_EQ(run(GetParam().first), GetParam().kept_1);
  EXPECT_EQ(run(GetParam().second), GetParam().kept_2);
}

INSTANTIATE_TEST_SUITE_P(Rows, RevokeCredits, testing::ValuesIn(kRevokeRows),
                         [](const auto& row) { return std::string(row.param.name); });

// ---- reserved handles

// A handle with another one in reserve, as write-back has it.
struct Pair {
  Handle handle, reserved;
  Start start(MachineDriver& driver, std::uint32_t credits, std::uint32_t reserve) {
    driver.journal().prepare(handle, {.credits = credits, .reserved = reserve});
    driver.journal().prepare(reserved, {.credits = reserve});
    handle.reserved = &reserved;
    return driver.journal().start(handle, driver.now());
  }
};

TEST(ReservedHandle, HoldsItsCreditsInEveryTransactionUntilItStarts) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Pair pair;
  ASSERT_EQ(pair.start(driver, 10, 18), Start::started);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead + 28);
  Handle* const reserved = Journal::detach_reserved(pair.handle);
  ASSERT_EQ(reserved, &pair.reserved);
  driver.write(pair.handle, FsBlock{1}, 1);
  driver.stop(pair.handle);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead + 1 + 18);
  driver.commit();
  // The next transaction is born with them.
  driver.change({}, 0);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead + 18);
  driver.wakes.clear();
  EXPECT_EQ(journal.start_reserved(*reserved, driver.now()), Start::started);
  EXPECT_EQ(driver.wakes, std::vector{Wake::reserved});
  driver.write(*reserved, FsBlock{2}, 1);
  driver.write(*reserved, FsBlock{3}, 1);
  EXPECT_EQ(reserved->used(), 2);
  driver.stop(*reserved);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead + 2);
  driver.commit();
  driver.change({}, 0);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead);  // nobody's any more
}

// A transaction that waits for its handles lets in one whose credits it has already; when it is
// being switched it lets in nobody.
TEST(ReservedHandle, JoinsALockedTransactionAndStartsOneOfItsOwn) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Pair first, second;
  Handle open;
  ASSERT_EQ(first.start(driver, 1, 5), Start::started);
  ASSERT_EQ(second.start(driver, 1, 5), Start::started);
  driver.start(open, {.credits = 1});
  Journal::detach_reserved(first.handle);
  Journal::detach_reserved(second.handle);
  driver.stop(first.handle);
  driver.stop(second.handle);
  driver.advance_commit_to("wait updates");
  ASSERT_EQ(journal.start_reserved(first.reserved, driver.now()), Start::started);
  EXPECT_EQ(first.reserved.transaction->tid, Tid{2});
  driver.stop(open);
  EXPECT_FALSE(journal.updates_finished());
  driver.write(first.reserved, FsBlock{9}, 1);
  driver.stop(first.reserved);
  driver.advance_commit_to("log");
  // What is still in reserve is no longer part of what this commit may write: it has the blocks
  // that it logged, descriptor and image, out of what it held.
  EXPECT_EQ(journal.committing()->outstanding_credits, kOverhead + 1 - 2);
  ASSERT_EQ(journal.start_reserved(second.reserved, driver.now()), Start::started);
  EXPECT_EQ(second.reserved.transaction->tid, Tid{3});
  driver.stop(second.reserved);
  driver.commit();
}

TEST(ReservedHandle, NotDetachedGoesWithItsHandle) {
  MachineDriver driver({.kind = k4k});
  Pair pair;
  ASSERT_EQ(pair.start(driver, 10, 18), Start::started);
  driver.wakes.clear();
  driver.stop(pair.handle);
  EXPECT_EQ(driver.journal().running()->outstanding_credits, kOverhead);
  EXPECT_EQ(driver.wakes, (std::vector{Wake::reserved, Wake::updates_finished}));
  driver.commit();
  driver.change({}, 0);
  EXPECT_EQ(driver.journal().running()->outstanding_credits, kOverhead);
}

TEST(ReservedHandle, DroppedGivesItsCreditsBack) {
  MachineDriver driver({.kind = k4k});
  Pair pair;
  ASSERT_EQ(pair.start(driver, 10, 18), Start::started);
  Journal::detach_reserved(pair.handle);
  driver.stop(pair.handle);
  driver.wakes.clear();
  driver.journal().drop_reserved(pair.reserved);
  EXPECT_EQ(driver.wakes, std::vector{Wake::reserved});
  EXPECT_EQ(driver.journal().running()->outstanding_credits, kOverhead);
}

// At most half of a transaction may be in reserve; what others hold in reserve is waited for.
TEST(ReservedHandle, WaitsForOthersBeyondHalfOfATransaction) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  constexpr std::uint32_t kHalf = (kMax - kOverhead) / 2;
  Pair first, second;
  ASSERT_EQ(first.start(driver, 1, kHalf - 4), Start::started);
  Journal::detach_reserved(first.handle);
  driver.stop(first.handle);
  EXPECT_EQ(second.start(driver, 1, 5), Start::wait_reserved);
  EXPECT_FALSE(journal.commit_wanted());  // no commit would help
  journal.drop_reserved(first.reserved);
  EXPECT_EQ(second.start(driver, 1, 5), Start::started);
  driver.stop(second.handle);
  EXPECT_EQ(first.start(driver, 1, kHalf), Start::started);
  driver.stop(first.handle);
}

// The same if what is in reserve alone leaves no room for the handle: a new transaction would begin
// with it.
TEST(ReservedHandle, IsWaitedForByAHandleThatWouldFitNoTransactionBesideIt) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Pair pair;
  ASSERT_EQ(pair.start(driver, 1, 100), Start::started);
  Journal::detach_reserved(pair.handle);
  driver.stop(pair.handle);
  struct Row {
    std::uint32_t credits;
    Start want;
  };
  constexpr Row kRows[] = {
      {kMax - kOverhead - 100 + 1, Start::wait_reserved},
      {kMax - kOverhead - 100, Start::started},
  };
  for (const Row& row : kRows) {
    Handle handle;
    journal.prepare(handle, {.credits = row.credits});
    EXPECT_EQ(journal.start(handle, driver.now()), row.want) << row.credits;
    EXPECT_FALSE(journal.commit_wanted());
    if (handle.transaction != nullptr) driver.stop(handle);
  }
}

// ---- more credits

TEST(Extend, TakesCreditsWhileTheTransactionRunsAndHasRoom) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Handle handle, other;
  driver.start(handle, {.credits = 10});
  driver.start(other, {.credits = 20});
  constexpr std::uint32_t kRoom = kMax - kOverhead - 30;
  EXPECT_FALSE(journal.extend(handle, kRoom + 1));
  EXPECT_EQ(handle.credits, 10);
  EXPECT_TRUE(journal.extend(handle, kRoom));
  EXPECT_EQ(handle.credits, 10 + kRoom);
  EXPECT_EQ(handle.used(), 0);
  EXPECT_EQ(journal.running()->outstanding_credits, kMax);
  driver.stop(other);
  EXPECT_TRUE(journal.extend(handle, 20));
  driver.stop(handle);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead);
}

TEST(Extend, IsRefusedOnceTheTransactionIsLocked) {
  MachineDriver driver({.kind = k4k});
  Handle handle;
  driver.start(handle, {.credits = 10});
  driver.advance_commit_to("wait updates");
  EXPECT_FALSE(driver.journal().extend(handle, 1));
  driver.stop(handle);
  driver.commit();
}

TEST(Restart, AsksForTheCommitAndGoesOnInTheNextTransaction) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  Handle handle;
  driver.start(handle, {.credits = 4});
  driver.write(handle, FsBlock{1}, 1);
  journal.restart(handle, {.credits = 7, .revoke_records = kRevokes}, driver.now());
  EXPECT_EQ(handle.transaction, nullptr);
  EXPECT_EQ(handle.credits, 8);
  EXPECT_EQ(handle.revoke_credits, kRevokes);
  EXPECT_EQ(journal.commit_request(), Tid{2});
  EXPECT_EQ(journal.running()->updates, 0U);
  EXPECT_EQ(journal.running()->outstanding_credits, kOverhead + 1);
  driver.advance_commit_to("log");
  EXPECT_EQ(journal.start(handle, driver.now()), Start::started);
  EXPECT_EQ(handle.transaction->tid, Tid{3});
  driver.stop(handle);
  driver.commit();
}

// ---- log space

// Whatever it asks for, a handle is let in only if a transaction of the largest size fits the log.
TEST(LogSpace, IsDemandedForAWholeTransaction) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  const auto fill = [&](std::uint32_t blocks) {
    std::vector<FsBlock> list;
    for (std::uint32_t n = 0; n < blocks; ++n) list.push_back(FsBlock{100 + n});
    driver.change(list, 1);
    driver.commit();
  };
  fill(300);  // 303 log blocks
  fill(300);
  EXPECT_EQ(journal.space_left(), 1023 - 32 - 606);
  fill(41);  // 43
  EXPECT_EQ(journal.space_left(), kMax + 1);
  Handle handle;
  journal.prepare(handle, {.credits = 1});
  EXPECT_EQ(journal.start(handle, driver.now()), Start::started);
  driver.stop(handle);
  driver.commit();  // one block more
  EXPECT_EQ(journal.space_left(), kMax);
  EXPECT_EQ(journal.start(handle, driver.now()), Start::started);
  driver.stop(handle);
  driver.commit();
  EXPECT_EQ(journal.space_left(), kMax - 1);
  EXPECT_EQ(journal.start(handle, driver.now()), Start::wait_space);
  EXPECT_FALSE(journal.commit_wanted());
}

// ---- what starts a commit

TEST(Expiry, AsksForTheCommitAtTheFirstStopFiveSecondsAfterTheFirstHandle) {
  struct Row {
    Duration age;
    bool wanted;
  };
  constexpr Row kRows[] = {{4999999999ns, false}, {5s, true}, {7s, true}};
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.age.count());
    MachineDriver driver({.kind = k4k});
    driver.set_now(Time(2s));
    driver.change({FsBlock{1}}, 1);
    driver.set_now(Time(2s + row.age));
    driver.change({FsBlock{1}}, 1);
    EXPECT_EQ(driver.journal().running()->expires, Time(7s));
    EXPECT_EQ(driver.journal().commit_wanted(), row.wanted);
    EXPECT_EQ(driver.journal().running()->handles, 2U);
  }
}

TEST(SyncHandle, AsksForTheCommitAndMarksItsTransaction) {
  MachineDriver driver({.kind = k4k});
  Handle handle;
  driver.start(handle, {.credits = 1});
  handle.sync = true;
  EXPECT_FALSE(handle.transaction->synchronous);
  driver.wakes.clear();
  driver.stop(handle);
  EXPECT_TRUE(driver.journal().running()->synchronous);
  EXPECT_TRUE(driver.journal().commit_wanted());
  EXPECT_EQ(driver.wakes, (std::vector{Wake::commit_requested, Wake::updates_finished}));
}

// What an fsync, a directory's fsync and sync have to wait for: of a tid that is running,
// committing, or done; with nothing there, nothing.
TEST(WhatToWaitFor, IsTheTransactionIfItIsNotDurableYet) {
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  const Tid t2{2}, t3{3};
  EXPECT_FALSE(journal.complete(Tid{1}));
  EXPECT_EQ(journal.force_commit(), std::nullopt);
  EXPECT_EQ(journal.start_commit(), std::nullopt);
  EXPECT_EQ(journal.latest_transaction(), Tid{1});
  EXPECT_FALSE(journal.commit_wanted());

  driver.change({FsBlock{1}}, 1);  // 2 runs
  EXPECT_EQ(journal.latest_transaction(), t2);
  EXPECT_FALSE(journal.committed(t2));
  EXPECT_FALSE(journal.commit_wanted());
  EXPECT_TRUE(journal.complete(t2));
  EXPECT_TRUE(journal.commit_wanted());

  driver.advance_commit_to("log");  // 2 commits, nothing runs
  EXPECT_EQ(journal.latest_transaction(), t2);
  EXPECT_TRUE(journal.complete(t2));
  EXPECT_EQ(journal.force_commit(), t2);
  EXPECT_EQ(journal.start_commit(), t2);

  driver.change({FsBlock{2}}, 1);  // 2 commits, 3 runs
  EXPECT_TRUE(journal.complete(t2));
  EXPECT_EQ(journal.commit_request(), t2);
  EXPECT_EQ(journal.start_commit(), t3);
  EXPECT_EQ(journal.commit_request(), t3);

  driver.commit();  // 2 is durable; the thread goes on with 3 at once
  EXPECT_FALSE(journal.complete(t2));
  EXPECT_TRUE(journal.committed(t2));
  EXPECT_FALSE(journal.committed(t3));
  EXPECT_TRUE(journal.commit_wanted());
  driver.commit();
  EXPECT_FALSE(journal.commit_wanted());
  EXPECT_EQ(journal.force_commit(), std::nullopt);
  EXPECT_EQ(journal.latest_transaction(), t3);
}

// Requests are for the running transaction; any other is over or will come by itself.
TEST(CommitRequest, ForAnotherTransactionIsNone) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{1}}, 1);
  driver.wakes.clear();
  driver.journal().request_commit(Tid{3});
  driver.journal().request_commit(Tid{1});
  EXPECT_FALSE(driver.journal().commit_wanted());
  driver.journal().request_commit(Tid{2});
  driver.journal().request_commit(Tid{2});
  EXPECT_EQ(driver.wakes, std::vector{Wake::commit_requested});
}

// An fsync need not flush by itself if the commit of its tid still will.
TEST(WillSendBarrier, UntilTheCommitBlockIsOnItsWay) {
  struct Row {
    const char* step;  // of the commit; "" before it
    bool want;
  };
  constexpr Row kRows[] = {
      {"", true}, {"wait updates", true}, {"log", true}, {"wait log", true}, {"commit", false}};
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.step);
    MachineDriver driver({.kind = k4k});
    driver.change({FsBlock{1}}, 1);
    if (*row.step != '\0') driver.advance_commit_to(row.step);
    EXPECT_EQ(driver.journal().will_send_barrier(Tid{2}), row.want);
    const Transaction* const running = driver.journal().running();
    const Transaction* const transaction = running ? running : driver.journal().committing();
    EXPECT_EQ(transaction->need_data_flush, row.want);
    driver.commit();
    EXPECT_FALSE(driver.journal().will_send_barrier(Tid{2}));
  }
  MachineDriver no_barrier({.kind = k4k, .options = {.barrier = false}});
  no_barrier.change({FsBlock{1}}, 1);
  EXPECT_FALSE(no_barrier.journal().will_send_barrier(Tid{2}));
}

}  // namespace
}  // namespace jbdlab::jbd2
