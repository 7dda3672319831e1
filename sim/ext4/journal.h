#pragma once

#include <cstdint>
#include <optional>

#include "sim/counters.h"
#include "sim/ext4/buffer_cache.h"
#include "sim/ext4/types.h"

namespace jbdlab::ext4 {

using sim::HandleType;

// What the parts of ext4 that change metadata ask of the journal (fs/ext4/ext4_jbd2.c). A call may
// wait: for a commit to let go of a buffer, for room in the transaction, for log space. All calls
// between start() and stop() of one thread belong to its handle, thread.handle.
//
// The order of calls is the order of the kernel's, since the order in which blocks are first
// dirtied is the order of tags in the log.
class MetadataJournal {
 public:
  virtual ~MetadataJournal() = default;

  // Opens a handle, or enters the open one again (nested starts count in journal_starts too).
  // `credits` as ext4 asks (without the block for revokes, which this adds), `reserved` for a
  // reserved handle that goes with it (write-back), `ino` where the start is on an inode (traces).
  virtual Task<KResult<void>> start(Thread& thread, HandleType type, std::uint32_t credits,
                                    std::uint32_t reserved = 0, std::optional<Ino> ino = {}) = 0;
  virtual Task<> stop(Thread& thread) = 0;

  // Before the first change of `buffer` in this handle. May wait; `buffer` is up to date.
  virtual Task<> get_write_access(Thread& thread, Buffer& buffer) = 0;
  // The same for a block just allocated, whose old contents do not matter; the contents become
  // zeros, up to date.
  virtual Task<> get_create_access(Thread& thread, Buffer& buffer) = 0;
  // After a change: the block belongs to the transaction now. Needs write access. Never waits.
  virtual void dirty_metadata(Thread& thread, Buffer& buffer) = 0;
  // The block was freed: its image need not be logged; with `revoke` no older image may be
  // replayed.
  virtual void forget(Thread& thread, Buffer& buffer, bool revoke) = 0;
  // Makes sure that `credits` more blocks may be dirtied (ext4_journal_ensure_credits): extends the
  // handle, or stops it and starts it in the next transaction; true if it restarted.
  virtual Task<bool> ensure_credits(Thread& thread, std::uint32_t credits) = 0;
  // Blocks [first, end) of `ino` must be on the disk, as far as they have a place, before the
  // transaction commits.
  virtual void order_data(Thread& thread, Ino ino, LogicalBlock first, LogicalBlock end) = 0;
  // The transaction of the open handle.
  virtual Tid tid(const Thread& thread) const = 0;
  // Asks for `credits` more in the same transaction (ext4_journal_extend); false if it has no room
  // or is no longer running, and then nothing has changed. Never waits.
  virtual bool extend(Thread& thread, std::uint32_t credits) = 0;
};

}  // namespace jbdlab::ext4
