#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "jbd2/machine/journal.h"
#include "sim/device/block_layer.h"
#include "sim/ext4/buffer_cache.h"
#include "sim/ext4/cpu_costs.h"
#include "sim/ext4/journal.h"
#include "sim/trace.h"

namespace jbdlab::ext4 {

// Where the blocks of an internal journal lie: runs in the order of the journal's blocks, without a
// gap, from 0 on.
class JournalPlace {
 public:
  struct Run {
    std::uint32_t first;  // block of the journal
    FsBlock physical;
    std::uint32_t count;
  };
  explicit JournalPlace(std::vector<Run> runs) : runs_(std::move(runs)) {}
  FsBlock block(LogBlock b) const;  // precondition: b < count()
  std::uint32_t count() const noexcept;
  const std::vector<Run>& runs() const noexcept { return runs_; }

 private:
  std::vector<Run> runs_;
};

// Runs jbd2's machine in simulated time: executes its steps on the block layer, lets threads wait
// for what it says they must wait for, and is its journal thread (kjournald2) with the commit timer.
// Source: fs/jbd2/{journal,transaction,commit,checkpoint}.c and fs/ext4/ext4_jbd2.c, Linux 6.18.
class JournalDriver final : public MetadataJournal, public jbd2::JournalObserver {
 public:
  // What the file system does for its journal.
  class Host {
   public:
    virtual ~Host() = default;
    // A transaction is durable (j_commit_callback): blocks that it freed may be used again.
    virtual void transaction_committed(Tid tid) = 0;
    // Submits what is dirty of `data` as far as it has blocks; waits for what of it is in flight.
    virtual Task<> submit_ordered(jbd2::OrderedData data) = 0;
    virtual Task<> wait_ordered(jbd2::OrderedData data) = 0;
  };

  JournalDriver(sim::Engine& engine, sim::Trace& trace, sim::BlockLayer& blocks,
                BufferCache& buffers, JournalPlace place, jbd2::LogSuperblock superblock,
                jbd2::Features features, const jbd2::JournalOptions& options,
                const CpuCosts& costs);
  ~JournalDriver() override;

  void set_host(Host* host) noexcept { host_ = host; }
  void start_thread();  // once, at mount

  // MetadataJournal
  Task<KResult<void>> start(Thread& thread, HandleType type, std::uint32_t credits,
                            std::uint32_t reserved = 0, std::optional<Ino> ino = {}) override;
  Task<> stop(Thread& thread) override;
  Task<> get_write_access(Thread& thread, Buffer& buffer) override;
  Task<> get_create_access(Thread& thread, Buffer& buffer) override;
  void dirty_metadata(Thread& thread, Buffer& buffer) override;
  void forget(Thread& thread, Buffer& buffer, bool revoke) override;
  bool extend(Thread& thread, std::uint32_t credits) override;
  Task<bool> ensure_credits(Thread& thread, std::uint32_t credits) override;
  void order_data(Thread& thread, Ino ino, LogicalBlock first, LogicalBlock end) override;
  Tid tid(const Thread& thread) const override;

  // The handle reserved by the open one, which takes it along: to be started after the data I/O.
  jbd2::Handle* detach_reserved(Thread& thread);
  // Opens a handle that had been reserved. `type` for traces: EXT_CONVERT.
  Task<> start_reserved(Thread& thread, jbd2::Handle* handle, HandleType type);

  // jbd2_complete_transaction, jbd2_log_wait_commit.
  Task<> complete(Tid tid);
  Task<> wait_commit(Tid tid);

  // Final commit, checkpoint, empty log. No handle is open, and none will be.
  Task<> shut_down();

  jbd2::Journal& machine() noexcept { return journal_; }
  const jbd2::Journal& machine() const noexcept { return journal_; }

 private:
  // JournalObserver
  void wake(jbd2::Wake what) override;
  void buffer_dirty(jbd2::BufferHead& buffer) override { buffers_.note_dirty(buffer); }
  void transaction_created(const jbd2::Transaction& transaction) override;
  void commit_started(const jbd2::Transaction& transaction) override;
  void transaction_committed(const jbd2::Transaction& transaction) override;
  void commit_ended(const jbd2::Transaction& transaction, Tid tail) override;
  void handle_stopped(const jbd2::Handle& handle, Tid tid) override;
  void checkpoint_tried(int result) override { trace_.checkpoint(result); }
  void transaction_dropped(const jbd2::Transaction& transaction) override;
  void tail_moved(const TailMove& move) override;

  // What one procedure of the journal holds while its steps are executed.
  struct Execution;
  struct LogIo;
  Task<> run(jbd2::Steps steps);
  Task<> execute(jbd2::step::WriteSuperblock step, Execution& on);
  Task<> execute(jbd2::step::WaitUpdates step, Execution& on);
  Task<> execute(jbd2::step::WriteData step, Execution& on);
  Task<> execute(jbd2::step::WaitData step, Execution& on);
  Task<> execute(jbd2::step::WriteLog step, Execution& on);
  Task<> execute(jbd2::step::WaitLog step, Execution& on);
  Task<> execute(jbd2::step::WriteCommit step, Execution& on);
  Task<> execute(jbd2::step::Flush step, Execution& on);
  Task<> execute(jbd2::step::WriteHome step, Execution& on);
  Task<> execute(jbd2::step::WaitBuffer step, Execution& on);
  Task<> execute(jbd2::step::LockCheckpoint step, Execution& on);
  Task<> execute(jbd2::step::UnlockCheckpoint step, Execution& on);
  Task<> execute(jbd2::step::WaitCommit step, Execution& on);

  sim::Completion image_written(Buffer& buffer, sim::Latch& latch);
  Task<> thread();
  Task<> join(Thread& thread, jbd2::Handle& handle);
  Task<> join_reserved(Thread& thread, jbd2::Handle& handle);
  jbd2::Handle* new_handle();
  void release(jbd2::Handle* handle);
  static void timer_fired(void* self);

  sim::Engine& engine_;
  sim::Trace& trace_;
  sim::BlockLayer& blocks_;
  BufferCache& buffers_;
  const JournalPlace place_;
  const CpuCosts costs_;
  jbd2::Journal journal_;
  Host* host_ = nullptr;
  sim::Mutex checkpoint_mutex_;
  sim::WaitQueue transaction_, updates_, reserved_, buffer_, requested_, done_;
  std::vector<std::unique_ptr<jbd2::Handle>> handles_;
  std::vector<jbd2::Handle*> free_handles_;
  std::vector<std::unique_ptr<LogIo>> log_ios_;
  std::vector<LogIo*> free_log_ios_;
  Time timer_{};  // when timer_fired() is next called, or was called last
  bool stopping_ = false;
};

}  // namespace jbdlab::ext4
