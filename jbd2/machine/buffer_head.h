#pragma once

#include <cstdint>

#include "base/block_ref.h"
#include "base/ids.h"
#include "base/time.h"

namespace jbdlab::jbd2 {

class Transaction;

// The list of its transaction that a buffer is on (jlist of the kernel's journal_head).
//   reserved  write access taken, nothing changed yet
//   metadata  changed: the commit will log it
//   shadow    its image has been handed out to be written to the log
//   forget    logged, or freed: looked at once more when the commit is over
enum class BufferList : std::uint8_t { none, reserved, metadata, shadow, forget };

// One block of the file system in memory, and what the journal knows of it: the kernel's
// buffer_head and journal_head in one (include/linux/jbd2.h, journal-head.h).
//
// Invariants: on a list only with a transaction; next_transaction only beside transaction, and then
// the younger of the two; while a transaction holds it, `dirty` is clear and `jbd_dirty` stands for
// it, so that nobody writes it home before the log has it.
struct BufferHead {
  explicit BufferHead(FsBlock where) noexcept : block(where) {}
  BufferHead(const BufferHead&) = delete;
  BufferHead& operator=(const BufferHead&) = delete;

  const FsBlock block;
  BlockRef data;           // contents now
  bool uptodate = false;   // `data` is what the block holds, or newer
  bool verified = false;   // its checksum and shape were checked once (the owner's business)
  bool dirty = false;      // to be written home by whoever flushes the block device
  bool locked = false;     // a read or a write home is in flight: writers wait
  bool jbd_dirty = false;  // as `dirty`, while a transaction holds it
  bool shadow = false;     // its image is on the way to the log: writers wait

  BufferList list = BufferList::none;
  bool modified = false;                    // cost its transaction a credit already
  bool freed = false;                       // its block was freed in `transaction`
  Transaction* transaction = nullptr;       // running or committing
  Transaction* next_transaction = nullptr;  // running, while `transaction` commits
  Transaction* cp_transaction = nullptr;    // committed, and its image here is not home yet
  BlockRef frozen;  // image for `transaction`, when next_transaction has begun to change it
  Time dirtied{};   // when it became dirty for the block device: the flusher's clock

  // Links of the transaction's list and of the checkpoint list; the lists' business.
  BufferHead *prev = nullptr, *next = nullptr;
  BufferHead *cp_prev = nullptr, *cp_next = nullptr;
  bool on_dirty_list = false;  // the cache's, which looks for dirty buffers there
};

}  // namespace jbdlab::jbd2
