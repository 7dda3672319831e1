// Buffers between two transactions (commit-path.md, section 4): frozen images, shadows, what is
// freed and what is revoked.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "jbd2/log_reader.h"
#include "tests/unit/jbd2/machine_driver.h"

namespace jbdlab::jbd2 {
namespace {

using Access = Journal::Access;

constexpr JournalKind k4k{.block_size = 4096, .block_count = 1024};

// What the log says of a disk: each transaction's images (values) and revokes.
struct Logged {
  std::map<FsBlock, std::uint64_t> images;
  std::vector<FsBlock> revoked;
};
std::vector<Logged> logged(MachineDriver& driver) {
  BlockRefSource source = journal_of(driver.disk().now(), driver.kind());
  const auto log = read_log(source);
  EXPECT_TRUE(log.has_value());
  EXPECT_EQ(finding_ids(*log), "");
  std::vector<Logged> out;
  for (const LogTransaction& t : log->transactions) {
    Logged& one = out.emplace_back();
    for (const LoggedBlock& b : t.blocks) {
      one.images[b.fs_block] = value_of(source.at(b.log_block));
    }
    for (const RevokedBlock& r : t.revoked) one.revoked.push_back(r.fs_block);
  }
  return out;
}

// A transaction that commits in two batches: block 0 is in the first, block 299 in the second.
// Stops when the first has been handed out.
void begin_two_batches(MachineDriver& driver) {
  std::vector<FsBlock> blocks;
  for (std::uint64_t n = 0; n < 300; ++n) blocks.push_back(FsBlock{n});
  driver.change(blocks, 1);
  driver.advance_commit_to("log 1: D253");
}

TEST(FrozenImage, IsLoggedWhileTheNextTransactionGoesOn) {
  MachineDriver driver({.kind = k4k});
  begin_two_batches(driver);
  BufferHead& buffer = driver.buffer(FsBlock{299});
  EXPECT_EQ(buffer.list, BufferList::metadata);
  Handle handle;
  driver.start(handle, {.credits = 1});
  ASSERT_TRUE(driver.try_write(handle, FsBlock{299}, 2));
  EXPECT_EQ(handle.used(), 1);
  EXPECT_EQ(value_of(buffer.frozen), 1U);
  EXPECT_EQ(value_of(buffer.data), 2U);
  EXPECT_EQ(buffer.transaction->tid, Tid{2});
  EXPECT_EQ(buffer.next_transaction->tid, Tid{3});
  ASSERT_TRUE(driver.try_write(handle, FsBlock{299}, 3));  // once more: the frozen image stays
  EXPECT_EQ(value_of(buffer.frozen), 1U);
  driver.stop(handle);
  driver.commit();
  EXPECT_FALSE(buffer.frozen);
  EXPECT_EQ(buffer.transaction->tid, Tid{3});
  EXPECT_EQ(buffer.next_transaction, nullptr);
  EXPECT_EQ(buffer.list, BufferList::metadata);
  EXPECT_EQ(buffer.cp_transaction->tid, Tid{2});
  EXPECT_FALSE(buffer.dirty);  // its newest image is not in the log: not to be written home
  driver.commit();
  EXPECT_EQ(buffer.cp_transaction->tid, Tid{3});
  EXPECT_TRUE(buffer.dirty);
  const auto log = logged(driver);
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].images.at(FsBlock{299}), 1U);
  EXPECT_EQ(log[0].images.at(FsBlock{0}), 1U);
  EXPECT_EQ(log[1].images, (std::map<FsBlock, std::uint64_t>{{FsBlock{299}, 3}}));
}

TEST(Shadow, MakesWritersWaitUntilTheImageIsWritten) {
  MachineDriver driver({.kind = k4k});
  begin_two_batches(driver);
  BufferHead& buffer = driver.buffer(FsBlock{0});
  EXPECT_EQ(buffer.list, BufferList::shadow);
  Handle handle;
  driver.start(handle, {.credits = 1});
  EXPECT_FALSE(driver.try_write(handle, FsBlock{0}, 2));
  EXPECT_EQ(buffer.next_transaction, nullptr);
  driver.wakes.clear();
  driver.complete_log_write_of(buffer);
  EXPECT_EQ(driver.wakes, std::vector{Wake::buffer});
  // Written, though the others are not: no copy is needed any more.
  ASSERT_TRUE(driver.try_write(handle, FsBlock{0}, 2));
  EXPECT_FALSE(buffer.frozen);
  EXPECT_EQ(buffer.next_transaction->tid, Tid{3});
  driver.stop(handle);
  driver.commit();
  driver.commit();
  const auto log = logged(driver);
  EXPECT_EQ(log.at(0).images.at(FsBlock{0}), 1U);
  EXPECT_EQ(log.at(1).images.at(FsBlock{0}), 2U);
}

TEST(Shadow, IsGoneWhenTheLogIsWritten) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{1}}, 1);
  driver.advance_commit_to("commit");
  BufferHead& buffer = driver.buffer(FsBlock{1});
  EXPECT_EQ(buffer.list, BufferList::forget);
  Handle handle;
  driver.start(handle, {.credits = 1});
  ASSERT_TRUE(driver.try_write(handle, FsBlock{1}, 2));
  EXPECT_FALSE(buffer.frozen);
  driver.stop(handle);
  driver.commit();
  driver.commit();
  EXPECT_EQ(logged(driver).at(0).images.at(FsBlock{1}), 1U);
  EXPECT_EQ(logged(driver).at(1).images.at(FsBlock{1}), 2U);
}

// The next transaction got access and changed nothing: it logs nothing, and the block goes home
// only after it.
TEST(NextTransaction, WithoutAChangeHoldsTheBufferAndLogsNothing) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{1}}, 1);
  driver.advance_commit_to("commit");
  BufferHead& buffer = driver.buffer(FsBlock{1});
  Handle handle;
  driver.start(handle, {.credits = 1});
  ASSERT_EQ(driver.journal().get_write_access(handle, buffer), Access::granted);
  driver.stop(handle);
  driver.commit();
  EXPECT_EQ(buffer.transaction->tid, Tid{3});
  EXPECT_EQ(buffer.list, BufferList::reserved);
  EXPECT_FALSE(buffer.dirty);
  driver.commit();
  EXPECT_EQ(buffer.transaction, nullptr);
  EXPECT_TRUE(buffer.dirty);
  EXPECT_EQ(buffer.cp_transaction->tid, Tid{2});  // whose image is still the newest
  EXPECT_TRUE(logged(driver).at(1).images.empty());
}

TEST(WriteAccess, WaitsForAWriteHome) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{1}}, 1);
  driver.commit();
  BufferHead& buffer = driver.buffer(FsBlock{1});
  driver.begin_write_home(buffer);
  Handle handle;
  driver.start(handle, {.credits = 1});
  EXPECT_EQ(driver.journal().get_write_access(handle, buffer), Access::wait_buffer);
  driver.complete(driver.disk().under_way().begin()->first);
  EXPECT_EQ(driver.journal().get_write_access(handle, buffer), Access::granted);
  EXPECT_EQ(driver.journal().get_write_access(handle, buffer), Access::granted);  // has it already
  driver.stop(handle);
  driver.commit();
}

// A committed image that is not home yet joins a transaction: from there on it must not go home.
TEST(WriteAccess, TakesADirtyBufferFromTheBlockDevice) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{1}}, 1);
  driver.commit();
  BufferHead& buffer = driver.buffer(FsBlock{1});
  ASSERT_TRUE(buffer.dirty);
  Handle handle;
  driver.start(handle, {.credits = 1});
  ASSERT_EQ(driver.journal().get_write_access(handle, buffer), Access::granted);
  EXPECT_FALSE(buffer.dirty);
  EXPECT_TRUE(buffer.jbd_dirty);
  driver.stop(handle);
  driver.commit();
  EXPECT_TRUE(buffer.dirty);
}

TEST(CreateAccess, DropsWhatTheBlockHeld) {
  MachineDriver driver({.kind = k4k});
  BufferHead& buffer = driver.buffer(FsBlock{1});
  buffer.dirty = true;  // of an earlier life
  Handle handle;
  driver.start(handle, {.credits = 1});
  driver.journal().get_create_access(handle, buffer);
  EXPECT_EQ(buffer.list, BufferList::reserved);
  EXPECT_FALSE(buffer.jbd_dirty);
  driver.stop(handle);
  driver.commit();
  EXPECT_FALSE(buffer.dirty);  // it was not dirtied in the end
  EXPECT_EQ(buffer.transaction, nullptr);
}

// ---- freed

enum class Before : std::uint8_t {  // where the buffer is when it is freed in transaction 3
  nowhere,                          // clean
  dirty_only,                       // dirty for the block device; the journal does not know it
  checkpoint,                       // logged by 2, not home
  checkpoint_home,                  // logged by 2, and home
  checkpoint_going,                 // logged by 2, the write home is under way
  own,                              // dirtied by 3
  own_and_checkpoint,               // dirtied by 3, logged by 2, not home
  committing,                       // 2 commits, and has not logged it yet
  committing_logged,                // 2 commits, and has logged it
  committing_and_own,               // 2 commits, and 3 has changed it since
};
struct ForgetRow {
  const char* name;  // "A freed buffer that was ..."
  Before before;
  std::int64_t used;          // credits of transaction 3 that are used after it
  BufferList list;            // where it is then,
  std::uint32_t transaction;  // of which tid; 0 of none
  std::uint32_t checkpoint;   // on whose checkpoint list; 0 on none
};
constexpr ForgetRow kForgets[] = {
    {"nowhere", Before::nowhere, 0, BufferList::none, 0, 0},
    {"dirty_only", Before::dirty_only, 0, BufferList::none, 0, 0},
    // Its old image may leave the log when the freeing is committed, no sooner.
    {"to_be_checkpointed", Before::checkpoint, 0, BufferList::forget, 3, 2},
    {"checkpointed_by_others", Before::checkpoint_home, 0, BufferList::none, 0, 0},
    {"on_its_way_home", Before::checkpoint_going, 0, BufferList::forget, 3, 2},
    {"changed_by_the_transaction", Before::own, 0, BufferList::none, 0, 0},
    {"changed_and_to_be_checkpointed", Before::own_and_checkpoint, 0, BufferList::forget, 3, 2},
    {"in_the_committing_transaction", Before::committing, 0, BufferList::metadata, 2, 0},
    {"logged_by_the_committing_transaction", Before::committing_logged, 0, BufferList::forget, 2,
     0},
    {"in_both_transactions", Before::committing_and_own, 0, BufferList::metadata, 2, 0},
};

class Forget : public testing::TestWithParam<ForgetRow> {};

TEST_P(Forget, TakesTheBufferOutAndNeverWritesItAgain) {
  const ForgetRow& row = GetParam();
  MachineDriver driver({.kind = k4k});
  Journal& journal = driver.journal();
  constexpr FsBlock kBlock{299};
  BufferHead& buffer = driver.buffer(kBlock);
  const bool committing = row.before >= Before::committing;
  if (row.before == Before::nowhere || row.before == Before::dirty_only ||
      row.before == Before::own) {
    driver.change({FsBlock{1}}, 1);
    driver.commit();
    buffer.dirty = row.before == Before::dirty_only;
  } else if (committing) {
    begin_two_batches(driver);
    if (row.before == Before::committing_logged) driver.advance_commit_to("commit");
  } else {
    driver.change({FsBlock{1}, kBlock}, 1);
    driver.commit();
  }
  if (row.before == Before::checkpoint_home) driver.write_all_home();
  if (row.before == Before::checkpoint_going) driver.begin_write_home(buffer);

  Handle handle;
  driver.start(handle, {.credits = 2});
  ASSERT_EQ(handle.transaction->tid, Tid{3});
  if (row.before == Before::own || row.before == Before::own_and_checkpoint ||
      row.before == Before::committing_and_own) {
    ASSERT_TRUE(driver.try_write(handle, kBlock, 2));
    EXPECT_EQ(handle.used(), 1);
  }
  journal.forget(handle, buffer);
  EXPECT_EQ(handle.used(), row.used);
  EXPECT_EQ(buffer.list, row.list);
  EXPECT_EQ(buffer.transaction == nullptr ? 0 : buffer.transaction->tid.value(), row.transaction);
  EXPECT_EQ(buffer.cp_transaction == nullptr ? 0 : buffer.cp_transaction->tid.value(),
            row.checkpoint);
  EXPECT_EQ(buffer.next_transaction != nullptr, committing);
  EXPECT_FALSE(buffer.dirty);
  EXPECT_FALSE(buffer.modified);
  driver.stop(handle);
  if (row.before == Before::checkpoint_going) driver.write_all_home();

  if (driver.commit_begun()) {
    driver.commit();
    // The committing transaction is older than the freeing: its image must stay in the log.
    EXPECT_EQ(buffer.cp_transaction->tid, Tid{2});
    EXPECT_EQ(buffer.transaction->tid, Tid{3});
    EXPECT_EQ(buffer.list, BufferList::forget);
    EXPECT_FALSE(buffer.dirty);
    EXPECT_EQ(logged(driver).at(0).images.at(kBlock), 1U);  // and it is as of that transaction
  }
  driver.commit();
  EXPECT_TRUE(logged(driver).at(1).images.empty());
  EXPECT_EQ(buffer.transaction, nullptr);
  EXPECT_EQ(buffer.next_transaction, nullptr);
  EXPECT_EQ(buffer.cp_transaction, nullptr);
  EXPECT_FALSE(buffer.dirty);
  EXPECT_FALSE(buffer.jbd_dirty);
  EXPECT_FALSE(buffer.freed);
}

INSTANTIATE_TEST_SUITE_P(Rows, Forget, testing::ValuesIn(kForgets),
                         [](const auto& row) { return std::string(row.param.name); });

// ---- revoked

TEST(Revoke, IsLoggedWithTheTransactionInOrderOfBlocks) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{7}, FsBlock{5}}, 1);
  driver.commit();
  EXPECT_FALSE(driver.journal().superblock().features().has(feature::kRevoke));
  Handle handle;
  driver.start(handle, {.credits = 1, .revoke_records = 8});
  driver.free(handle, FsBlock{7});
  driver.free(handle, FsBlock{5});
  EXPECT_EQ(handle.revoke_credits, 6);
  driver.stop(handle);
  driver.commit();
  const auto log = logged(driver);
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[1].revoked, (std::vector{FsBlock{5}, FsBlock{7}}));
  EXPECT_TRUE(log[1].images.empty());
  EXPECT_TRUE(driver.journal().superblock().features().has(feature::kRevoke));
  driver.change({}, 0);
  driver.commit();
  EXPECT_TRUE(logged(driver).at(2).revoked.empty());  // once is enough
}

struct CancelRow {
  const char* name;
  bool home;    // its older image is home, so that freeing it lets go of the buffer
  bool create;  // rather than read and change
};
// Not: changed while the transaction still has it. Like the kernel (jbd2_write_access_granted) the
// machine has nothing more to do for such an access, and a file system creates what it allocates.
constexpr CancelRow kCancels[] = {{"created", false, true},
                                  {"created_with_nothing_in_the_log", true, true},
                                  {"changed_with_nothing_in_the_log", true, false}};

class CancelRevoke : public testing::TestWithParam<CancelRow> {};

// Metadata again in the transaction that freed it: its new image counts, so no revoke is logged.
TEST_P(CancelRevoke, IfTheBlockIsMetadataAgain) {
  MachineDriver driver({.kind = k4k});
  driver.change({FsBlock{5}, FsBlock{6}}, 1);
  driver.commit();
  if (GetParam().home) driver.write_all_home();
  Handle handle;
  driver.start(handle, {.credits = 2, .revoke_records = 8});
  driver.free(handle, FsBlock{5});
  driver.free(handle, FsBlock{6});
  if (GetParam().create) {
    driver.create(handle, FsBlock{5}, 2);
  } else {
    driver.write(handle, FsBlock{5}, 2);
  }
  driver.stop(handle);
  driver.commit();
  const auto log = logged(driver);
  EXPECT_EQ(log.at(1).revoked, std::vector{FsBlock{6}});
  EXPECT_EQ(log.at(1).images, (std::map<FsBlock, std::uint64_t>{{FsBlock{5}, 2}}));
  EXPECT_EQ(driver.buffer(FsBlock{5}).cp_transaction->tid, Tid{3});
  EXPECT_TRUE(driver.buffer(FsBlock{5}).dirty);
}

INSTANTIATE_TEST_SUITE_P(Rows, CancelRevoke, testing::ValuesIn(kCancels),
                         [](const auto& row) { return std::string(row.param.name); });

// The next transaction's use of a block does not touch the records of the one that commits.
TEST(CancelRevokeOf, TheCommittingTransactionIsTooLate) {
  MachineDriver driver({.kind = k4k});
  Handle handle, later;
  driver.start(handle, {.credits = 2, .revoke_records = 8});
  driver.free(handle, FsBlock{5});
  driver.order_data(handle, {Ino{12}, LogicalBlock{0}}, FsBlock{90}, 1);
  driver.stop(handle);
  driver.advance_commit_to("data");  // switched, and the revoke blocks are not written yet
  driver.start(later, {.credits = 2, .revoke_records = 8});
  driver.create(later, FsBlock{5}, 2);
  driver.stop(later);
  driver.commit();
  EXPECT_EQ(logged(driver).at(0).revoked, std::vector{FsBlock{5}});
}

// Ranges of one file become one that holds them all; other files have their own.
TEST(OrderedDataOf, AFileIsOneRange) {
  MachineDriver driver({.kind = k4k});
  Handle handle;
  driver.start(handle, {.credits = 1});
  const auto order = [&](std::uint32_t ino, std::uint32_t first, std::uint32_t end) {
    driver.journal().order_data(handle, {Ino{ino}, LogicalBlock{first}, LogicalBlock{end}});
  };
  order(12, 10, 12);
  order(13, 0, 1);
  order(12, 20, 21);
  order(12, 4, 5);
  driver.stop(handle);
  driver.advance_commit_to("data");
  EXPECT_EQ(driver.steps.back(), "data 12:4-21 13:0-1");
  driver.commit();
}

}  // namespace
}  // namespace jbdlab::jbd2
