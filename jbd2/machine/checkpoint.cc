// Log space: what of the log is still needed, and how it is freed by writing blocks home.
// Source: fs/jbd2/checkpoint.c and journal.c (jbd2_journal_get_log_tail, jbd2_update_log_tail,
// jbd2_mark_journal_empty, jbd2_journal_destroy).

#include "base/check.h"
#include "jbd2/machine/journal.h"

namespace jbdlab::jbd2 {

// Takes a buffer off its checkpoint list: its block is home, or a later commit has it.
bool Journal::remove_checkpoint(BufferHead& buffer) {
  Transaction& transaction = *std::exchange(buffer.cp_transaction, nullptr);
  transaction.checkpoint.remove(buffer);
  if (!transaction.checkpoint.empty() || transaction.state != TransactionState::finished) {
    return false;
  }
  drop(transaction);
  return true;
}

void Journal::drop(Transaction& transaction) {
  observer_.transaction_dropped(transaction);
  checkpoint_.erase(transaction.place);
}

// Before a commit: lets go of what others have written home in the meantime. Memory only; it stops
// at the first buffer that is busy, as the kernel does.
void Journal::clean_checkpoint_lists() {
  for (auto at = checkpoint_.begin(); at != checkpoint_.end();) {
    Transaction& transaction = **at++;
    bool released = false;
    while (!released) {
      BufferHead* const buffer = transaction.checkpoint.first();
      if (buffer->transaction != nullptr || buffer->locked || buffer->dirty) return;
      released = remove_checkpoint(*buffer);
    }
  }
}

Journal::Tail Journal::log_tail() const noexcept {
  Tail tail{next_tid_, head_, false};
  if (!checkpoint_.empty()) {
    tail = {checkpoint_.front()->tid, checkpoint_.front()->log_start, false};
  } else if (committing_) {
    tail = {committing_->tid, committing_->log_start, false};
  } else if (running_) {
    tail.tid = running_->tid;
  }
  tail.moves = tail.tid.after(tail_sequence_);
  return tail;
}

Steps Journal::move_tail(Tid tid, LogBlock block) {
  superblock_.set_sequence(tid);
  superblock_.set_start(block);
  step::WriteSuperblock write = superblock_step(false, true);
  co_yield std::move(write);
  const std::uint32_t freed = geometry_.distance(tail_, block);
  observer_.tail_moved({tail_sequence_, tid, block, freed});
  free_ += freed;
  tail_ = block;
  tail_sequence_ = tid;
}

Steps Journal::cleanup_tail(int& result) {
  const Tail tail = log_tail();
  result = tail.moves ? 0 : 1;
  if (!tail.moves) co_return;
  if (options_.barrier) co_yield step::Flush{};  // what was written home must be there first
  co_yield move_tail(tail.tid, tail.block);
}

Steps Journal::checkpoint() {
  int result = 0;
  co_yield cleanup_tail(result);
  observer_.checkpoint_tried(result);
  if (result == 0) co_return;
  if (!checkpoint_.empty()) co_yield checkpoint_buffers(checkpoint_.front()->tid);
  co_yield cleanup_tail(result);
}

// Writes home what is left of the oldest transaction, `tid`.
Steps Journal::checkpoint_buffers(Tid tid) {
  constexpr std::size_t kBatch = 64;  // JBD2_NR_BATCH
  step::WriteHome batch;
  // While it is there: a wait may end with the transaction gone.
  while (!checkpoint_.empty() && checkpoint_.front()->tid == tid) {
    Transaction& transaction = *checkpoint_.front();
    BufferHead* const buffer = transaction.checkpoint.first();
    const bool round = !batch.buffers.empty() && buffer == batch.buffers.front();
    const bool busy = buffer->transaction != nullptr || buffer->locked;
    if (!batch.buffers.empty() && (busy || round || batch.buffers.size() == kBatch)) {
      step::WriteHome full = std::exchange(batch, {});
      co_yield std::move(full);
      continue;
    }
    if (buffer->transaction != nullptr) {  // logged again: only that commit can free this one
      const Tid later = buffer->transaction->tid;
      ++transaction.checkpoint_forced;
      request_commit(later);
      co_yield step::UnlockCheckpoint{};
      co_yield step::WaitCommit{later};
      co_yield step::LockCheckpoint{};
    } else if (buffer->locked) {
      co_yield step::WaitBuffer{buffer};
    } else if (!buffer->dirty) {
      if (remove_checkpoint(*buffer)) co_return;
    } else {
      ++transaction.checkpoint_written;
      batch.buffers.push_back(buffer);
      transaction.checkpoint.remove(*buffer);  // to the end: the list is a ring
      transaction.checkpoint.push_back(*buffer);
    }
  }
  CHECK(batch.buffers.empty());
}

Steps Journal::make_space() {
  co_yield step::LockCheckpoint{};
  while (space_left() < max_transaction_) {
    int result = 0;
    if (!checkpoint_.empty()) {
      co_yield checkpoint();
      continue;
    }
    co_yield cleanup_tail(result);
    if (result == 0) continue;
    CHECK(committing_);  // otherwise the whole ring is free, and that is enough
    co_yield step::UnlockCheckpoint{};
    co_yield step::WaitCommit{committing_->tid};
    co_yield step::LockCheckpoint{};
  }
  co_yield step::UnlockCheckpoint{};
}

Steps Journal::shut_down() {
  if (running_) co_yield commit();
  while (!checkpoint_.empty()) {
    co_yield step::LockCheckpoint{};
    co_yield checkpoint();
    co_yield step::UnlockCheckpoint{};
  }
  next_tid_ = next_tid_.next();
  tail_sequence_ = next_tid_;
  if (superblock_.empty()) co_return;  // no commit since the mount: the disk says so already
  superblock_.set_sequence(tail_sequence_);
  superblock_.set_start(LogBlock{0});
  superblock_.set_head(head_);
  Features features = superblock_.features();
  features.clear(feature::kFastCommit);  // the area holds nothing that a reader must know
  superblock_.set_features(features);
  flushed_ = true;
  step::WriteSuperblock write = superblock_step(true, true);
  co_yield std::move(write);
}

}  // namespace jbdlab::jbd2
