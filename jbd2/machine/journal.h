#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "jbd2/format/commit.h"
#include "jbd2/format/geometry.h"
#include "jbd2/format/log_format.h"
#include "jbd2/format/superblock.h"
#include "jbd2/machine/handle.h"
#include "jbd2/machine/steps.h"
#include "jbd2/machine/transaction.h"

namespace jbdlab::jbd2 {

// Where kernels differ, and what a mount option says. Sources: fs/jbd2/journal.c, transaction.c.
struct JournalOptions {
  Duration commit_interval = std::chrono::seconds(5);
  bool barrier = true;
  // A transaction may take 1/divisor of the log: 3 since Linux 6.11, 4 before.
  std::uint32_t transaction_divisor = 3;
  // Wall clock at simulated time zero, for commit blocks; and the tick of the coarse clock that
  // they are read from.
  std::uint64_t epoch_seconds = 0;
  Duration clock_tick = std::chrono::milliseconds(4);
};

// What may have changed, so that those who wait should look again.
enum class Wake : std::uint8_t {
  transaction,       // the running transaction has moved on, or there is a new one
  updates_finished,  // the locked transaction has no handle left
  reserved,          // reserved credits were given back
  buffer,            // a commit has let go of a buffer
  commit_requested,  // the journal thread has work
  commit_done,       // a transaction is committed
};

// Told of what happens, for wakes, traces and the file system's callbacks.
class JournalObserver {
 public:
  virtual ~JournalObserver() = default;
  virtual void wake(Wake what) = 0;
  // `buffer` has become dirty for the block device: it may be written home from now on.
  virtual void buffer_dirty(BufferHead& buffer) = 0;
  virtual void transaction_created(const Transaction&) {}
  virtual void commit_started(const Transaction&) {}
  // The commit is durable; blocks that it freed may be used again.
  virtual void transaction_committed(const Transaction&) {}
  virtual void commit_ended(const Transaction&, Tid /*tail*/) {}
  virtual void handle_stopped(const Handle&, Tid) {}
  // result: 0 the tail moved, 1 nothing to clean (trace_jbd2_checkpoint).
  virtual void checkpoint_tried(int /*result*/) {}
  virtual void transaction_dropped(const Transaction&) {}
  struct TailMove {
    Tid from, to;
    LogBlock block;
    std::uint32_t freed;
  };
  virtual void tail_moved(const TailMove&) {}
};

// jbd2's transaction machine without I/O and without a clock: it never waits and never writes, it
// says what to wait for and hands out steps. Whoever drives it executes them: the timed simulator,
// a test at once, a lab one at a time, a crash explorer that stops in between.
//
// Invariants: at most one running and one committing transaction; tids consecutive; the log blocks
// between tail and head belong to the committing transaction and to those of the checkpoint list,
// oldest first; no block goes home while its newest image is in an uncommitted transaction.
// Source: fs/jbd2/{journal,transaction,commit,checkpoint,revoke}.c of Linux 6.18.
class Journal {
 public:
  // `superblock` is sound (check_superblock) and its log is empty: a log that needs recovery is
  // recovered before. `features` are those that this mount adds (64 bit, checksums).
  // `observer` outlives the journal.
  Journal(LogSuperblock superblock, Features features, const JournalOptions& options,
          JournalObserver& observer);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // ---- handles. `now` never goes back from call to call.
  enum class Start : std::uint8_t {
    started,
    wait_transaction,  // Wake::transaction, then again; a commit was asked for if one is needed
    wait_reserved,     // Wake::reserved, then again
    wait_space,        // run make_space() under the checkpoint lock, then again
  };
  // Fills `handle` with the request. Follow with start().
  void prepare(Handle& handle, const Handle::Request& request) const;
  Start start(Handle& handle, Time now);
  // Starts a handle that came with another one, and that one has been stopped.
  Start start_reserved(Handle& handle, Time now);
  // Gives `handle.reserved` a life of its own, to be started or dropped later.
  static Handle* detach_reserved(Handle& handle) noexcept;
  void drop_reserved(Handle& handle);
  // More credits for a started handle, if the transaction has room; else false.
  bool extend(Handle& handle, std::uint32_t credits);
  // Ends the handle, asks for the commit of its transaction and refills it with `request`: start()
  // will take it into the next one (jbd2__journal_restart).
  void restart(Handle& handle, const Handle::Request& request, Time now);
  // Ends the handle; asks for a commit if the transaction has expired or the handle is sync.
  void stop(Handle& handle, Time now);

  // ---- buffers
  enum class Access : std::uint8_t {
    granted,
    wait_buffer
  };  // Wake::buffer, or its I/O, then again
  Access get_write_access(Handle& handle, BufferHead& buffer);
  // For a block that was just allocated; its old contents are of no interest.
  void get_create_access(Handle& handle, BufferHead& buffer);
  void dirty_metadata(Handle& handle, BufferHead& buffer);
  void forget(Handle& handle, BufferHead& buffer);
  // The image of `buffer` has been written to the log: writers may go on (Wake::buffer).
  void image_written(BufferHead& buffer);
  // Records that older images of `block` must not be replayed; `buffer` is its buffer.
  void revoke(Handle& handle, BufferHead& buffer);

  // Data that must reach the disk before the transaction commits (jbd2_journal_inode_ranged_write).
  // Ranges of one file become one that holds them all.
  void order_data(Handle& handle, const OrderedData& data);

  // ---- commits
  void request_commit(Tid tid);
  bool commit_wanted() const noexcept { return commit_request_ != commit_sequence_; }
  // One commit of the running transaction. Precondition: there is one.
  Steps commit();
  bool updates_finished() const noexcept;

  const Transaction* running() const noexcept { return running_.get(); }
  const Transaction* committing() const noexcept { return committing_.get(); }
  Tid commit_sequence() const noexcept { return commit_sequence_; }
  Tid commit_request() const noexcept { return commit_request_; }
  bool committed(Tid tid) const noexcept { return !tid.after(commit_sequence_); }
  // jbd2_complete_transaction: what an fsync of `tid` has to wait for. Asks for the commit if tid
  // is running. False: nothing to wait for.
  bool complete(Tid tid);
  // jbd2_journal_force_commit: the transaction to wait for, whatever is in it, or nothing.
  std::optional<Tid> force_commit();
  // jbd2_journal_start_commit: the same, for sync.
  std::optional<Tid> start_commit();
  Tid latest_transaction() const noexcept;
  // jbd2_trans_will_send_data_barrier: true if the commit of tid will still flush the device (and
  // then it will: need_data_flush).
  bool will_send_barrier(Tid tid);

  // ---- log space
  Steps make_space();  // until a transaction of the largest size fits; under the checkpoint lock
  Steps shut_down();   // final commit and checkpoint, log marked empty: unmount
  std::uint32_t free_blocks() const noexcept { return free_; }
  std::int64_t space_left() const noexcept;
  std::uint32_t max_transaction_blocks() const noexcept { return max_transaction_; }
  std::uint32_t transactions_listed() const noexcept {
    return static_cast<std::uint32_t>(checkpoint_.size());
  }

  const LogFormat& format() const noexcept { return format_; }
  const Geometry& geometry() const noexcept { return geometry_; }
  const LogSuperblock& superblock() const noexcept { return superblock_; }
  Tid next_tid() const noexcept { return next_tid_; }
  LogBlock head() const noexcept { return head_; }
  LogBlock tail() const noexcept { return tail_; }
  void set_now(Time now) noexcept { now_ = now; }

 private:
  struct Tail {
    Tid tid;
    LogBlock block;
    bool moves;  // tid is younger than the tail on disk
  };

  Start add_credits(Handle& handle);
  void create_transaction();
  void leave(Handle& handle);
  void give_back_reserved(std::uint32_t credits);
  std::uint32_t overhead() const noexcept;
  std::uint32_t max_handle_credits() const noexcept { return max_transaction_ - overhead(); }
  CommitTime commit_time() const;

  void file(BufferHead& buffer, Transaction& transaction, BufferList list);
  void unlink(BufferHead& buffer);
  void unfile(BufferHead& buffer);
  void refile(BufferHead& buffer);
  void mark_dirty(BufferHead& buffer);
  void cancel_revoke(BufferHead& buffer);

  LogBlock take_log_block();
  Steps write_revokes();
  Steps write_metadata(std::uint32_t& transaction_checksum);
  step::WriteCommit commit_record(std::uint32_t transaction_checksum);
  void finish_buffers(Transaction& transaction);
  void finish_commit();
  void clean_checkpoint_lists();

  bool remove_checkpoint(BufferHead& buffer);  // true if its transaction left the log
  void drop(Transaction& transaction);
  Tail log_tail() const noexcept;
  step::WriteSuperblock superblock_step(bool preflush, bool fua);
  Steps move_tail(Tid tid, LogBlock block);
  Steps cleanup_tail(int& result);
  Steps checkpoint();
  Steps checkpoint_buffers(Tid tid);

  LogSuperblock superblock_;
  const JournalOptions options_;
  JournalObserver& observer_;
  LogFormat format_;
  Geometry geometry_;
  std::uint32_t max_transaction_ = 0;

  Time now_{};
  LogBlock head_, tail_;
  std::uint32_t free_ = 0;
  Tid tail_sequence_, next_tid_, commit_sequence_, commit_request_;
  bool flushed_ = true;  // the superblock on disk says "empty": the first commit writes it
  std::uint32_t reserved_credits_ = 0;
  std::unique_ptr<Transaction> running_, committing_;
  std::list<std::unique_ptr<Transaction>> checkpoint_;  // oldest first
  // Blocks revoked in the running and in the committing transaction.
  std::set<FsBlock> revoke_table_, committing_revokes_;
};

}  // namespace jbdlab::jbd2
