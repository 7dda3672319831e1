#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "jbd2/machine/lists.h"

namespace jbdlab::jbd2 {

// Where a transaction is on its way (t_state, in order). Handles join while it is running; locked,
// it waits for those that it has; from flush on, the next one may start.
enum class TransactionState : std::uint8_t {
  running,
  locked,
  switching,
  flush,
  commit,
  commit_dflush,
  commit_jflush,
  commit_callback,
  finished,
};

// Data of a file that must reach the disk before the transaction commits, as far as it has blocks:
// blocks [first, end) of the file (jbd2_inode, i_dirty_start and i_dirty_end).
struct OrderedData {
  Ino ino;
  LogicalBlock first, end;
};

// The blocks that change together: all of them survive a crash, or none. Owned by its Journal; a
// transaction lives until its last buffer is home (or superseded), then it leaves the log.
// Source: struct transaction_s of include/linux/jbd2.h.
class Transaction {
 public:
  Transaction(Tid id, Time now, Time expiry) noexcept : tid(id), started(now), expires(expiry) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  const Tid tid;
  const Time started;
  const Time expires;  // a handle that stops at or after this asks for the commit
  TransactionState state = TransactionState::running;
  LogBlock log_start;  // where its first log block is; valid from `flush` on

  std::uint32_t updates = 0;  // open handles
  std::uint32_t handles = 0;  // all that ever joined
  // Log blocks that it may need: credits granted and not returned, and its descriptors
  // (t_outstanding_credits). While it commits: what it has not written yet.
  std::int64_t outstanding_credits = 0;
  std::uint32_t outstanding_revokes = 0;
  bool synchronous = false;      // a sync handle was in it
  bool need_data_flush = false;  // somebody relies on its commit to flush the data device

  std::vector<OrderedData> ordered;  // what must be on the disk before the commit is

  TransactionList reserved, metadata, shadow, forget;
  CheckpointList checkpoint;  // logged buffers that are not home yet, in the order of their tags

  std::uint32_t blocks = 0;         // metadata blocks that its commit logs
  std::uint32_t blocks_logged = 0;  // and with descriptor, revoke and commit blocks
  std::uint32_t checkpoint_forced = 0;   // commits that its checkpoint had to force
  std::uint32_t checkpoint_written = 0;  // buffers that its checkpoint wrote home
  std::uint32_t checkpoint_dropped = 0;  // buffers that a later commit logged again

  // Where the journal keeps it when it is committed; the journal's business.
  std::list<std::unique_ptr<Transaction>>::iterator place;

  TransactionList& list(BufferList which);
};

}  // namespace jbdlab::jbd2
