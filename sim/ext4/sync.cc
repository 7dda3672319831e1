// fsync, syncfs and sync. Source: fs/ext4/fsync.c, fs/ext4/super.c (ext4_sync_fs), fs/sync.c.

#include "base/check.h"
#include "sim/ext4/file_system.h"

namespace jbdlab::ext4 {

Task<KResult<void>> FileSystem::fsync(Thread& thread, OpenFile& file, bool datasync) {
  co_await engine_.delay(config_.costs.syscall);
  co_return co_await sync_file(thread, *file.inode, file.parent, Writeback::Range(), datasync);
}

Task<KResult<void>> FileSystem::sync_file(Thread& thread, Inode& inode, Ino parent,
                                          Writeback::Range range, bool datasync) {
  trace_.sync_file_enter(inode.ino, parent, datasync);
  const KResult<void> written = co_await writeback_->write_and_wait(thread, inode, range);
  if (!written) co_return written;
  jbd2::Journal& journal = journal_->machine();
  if (!inode.is_regular()) {  // whatever is running, whether it has to do with it or not
    const std::optional<Tid> tid = journal.force_commit();
    if (tid) co_await journal_->wait_commit(*tid);
    co_return KResult<void>();
  }
  const Tid tid = datasync ? inode.datasync_tid : inode.sync_tid;
  const bool needs_flush = config_.mount.barrier && !journal.will_send_barrier(tid);
  co_await journal_->complete(tid);
  if (needs_flush) co_await blocks_.flush();
  co_return KResult<void>();
}

Task<> FileSystem::sync_fs(bool wait) {
  trace_.sync_fs(wait);
  co_await writeback_->drain_conversions();
  jbd2::Journal& journal = journal_->machine();
  const bool needs_flush =
      wait && config_.mount.barrier && !journal.will_send_barrier(journal.latest_transaction());
  const std::optional<Tid> tid = journal.start_commit();
  if (wait && tid) co_await journal_->wait_commit(*tid);
  if (needs_flush) co_await blocks_.flush();
}

// Data, then the journal without waiting, then what is dirty of the metadata; and all of it once
// more, waiting (sync_filesystem).
Task<KResult<void>> FileSystem::sync_filesystem() {
  KResult<void> result = co_await writeback_->write_all(false);
  co_await sync_fs(false);
  co_await buffers_->write_dirty(false);
  const KResult<void> again = co_await writeback_->write_all(true);
  if (!again && result) result = again;
  co_await writeback_->wait_all();
  co_await sync_fs(true);
  co_await buffers_->write_dirty(true);
  co_return result;
}

Task<KResult<void>> FileSystem::syncfs(Thread& /*thread*/) {
  co_await engine_.delay(config_.costs.syscall);
  co_return co_await sync_filesystem();
}

// The whole system, of which this file system is all there is (ksys_sync): block devices come last.
Task<KResult<void>> FileSystem::sync(Thread& /*thread*/) {
  co_await engine_.delay(config_.costs.syscall);
  KResult<void> result = co_await writeback_->write_all(false);
  const KResult<void> again = co_await writeback_->write_all(true);
  if (!again && result) result = again;
  co_await writeback_->wait_all();
  co_await sync_fs(false);
  co_await sync_fs(true);
  co_await buffers_->write_dirty(true);
  co_return result;
}

void FileSystem::transaction_committed(Tid tid) { block_allocator_->on_commit(tid); }

Task<> FileSystem::submit_ordered(jbd2::OrderedData data) {
  if (Inode* const inode = inodes_->find(data.ino)) {
    co_await writeback_->write_mapped(*inode, {data.first, data.end.value()});
  }
}

Task<> FileSystem::wait_ordered(jbd2::OrderedData data) {
  if (Inode* const inode = inodes_->find(data.ino)) {
    co_await writeback_->wait(*inode, {data.first, data.end.value()});
  }
}

}  // namespace jbdlab::ext4
