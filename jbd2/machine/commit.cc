// The commit, in the kernel's order. Source: fs/jbd2/commit.c, jbd2_journal_commit_transaction.

#include <memory>

#include "base/check.h"
#include "jbd2/format/csum.h"
#include "jbd2/format/descriptor.h"
#include "jbd2/format/escape.h"
#include "jbd2/format/revoke.h"
#include "jbd2/machine/journal.h"

namespace jbdlab::jbd2 {
namespace {

// A fresh block of the log and where it goes. `contents` is for a builder, which clears it first.
LogWrite new_control_block(LogBlock where, std::uint32_t block_size) {
  return {where, BlockRef::unset(block_size)};
}

}  // namespace

Steps Journal::commit() {
  CHECK(running_ && !committing_);
  if (flushed_) {  // nothing of the log was needed until now: say where it begins
    co_yield step::LockCheckpoint{};
    superblock_.set_sequence(tail_sequence_);
    superblock_.set_start(tail_);
    flushed_ = false;
    step::WriteSuperblock write = superblock_step(false, false);
    co_yield std::move(write);
    co_yield step::UnlockCheckpoint{};
  }

  Transaction& transaction = *running_;
  transaction.state = TransactionState::locked;
  observer_.commit_started(transaction);
  do {
    co_yield step::WaitUpdates{};
  } while (transaction.updates > 0);  // a reserved handle may have joined since the wait was over

  transaction.state = TransactionState::switching;
  while (BufferHead* const buffer = transaction.reserved.first()) refile(*buffer);
  clean_checkpoint_lists();
  CHECK(committing_revokes_.empty());
  std::swap(revoke_table_, committing_revokes_);
  transaction.outstanding_credits -= reserved_credits_;  // nobody can claim them here any more
  transaction.state = TransactionState::flush;
  transaction.log_start = head_;
  committing_ = std::move(running_);
  observer_.wake(Wake::transaction);

  const bool has_data = !transaction.ordered.empty();
  if (has_data) {
    step::WriteData data{std::move(transaction.ordered)};
    co_yield std::move(data);
  }
  transaction.blocks = transaction.metadata.count();
  co_yield write_revokes();
  transaction.state = TransactionState::commit;
  std::uint32_t transaction_checksum = kTransactionChecksumSeed;
  co_yield write_metadata(transaction_checksum);

  if (has_data) co_yield step::WaitData{};

  // The oldest block still needed, as of before the flush: that flush makes everything older safe.
  const Tail tail = log_tail();
  const bool move_it =
      tail.moves && geometry_.distance(tail_, tail.block) >= max_transaction_;
  transaction.state = TransactionState::commit_dflush;
  co_yield step::WaitLog{};
  while (BufferHead* const buffer = transaction.shadow.last()) {
    CHECK(!buffer->shadow);
    file(*buffer, transaction, BufferList::forget);
  }

  transaction.state = TransactionState::commit_jflush;
  step::WriteCommit record = commit_record(transaction_checksum);
  co_yield std::move(record);
  if (move_it) {
    co_yield step::LockCheckpoint{};
    if (tail.tid.after(tail_sequence_)) co_yield move_tail(tail.tid, tail.block);
    co_yield step::UnlockCheckpoint{};
  }
  finish_buffers(transaction);
  finish_commit();
}

LogBlock Journal::take_log_block() {
  CHECK(free_ > 1);
  --committing_->outstanding_credits;
  ++committing_->blocks_logged;
  --free_;
  return std::exchange(head_, geometry_.next(head_));
}

Steps Journal::write_revokes() {
  step::WriteLog batch;
  auto revoked = committing_revokes_.begin();
  while (revoked != committing_revokes_.end()) {
    LogWrite write = new_control_block(take_log_block(), format_.block_size);
    RevokeBuilder builder(format_, committing_->tid, write.contents.mutate());
    for (; revoked != committing_revokes_.end() && !builder.full(); ++revoked) {
      builder.add(*revoked);
    }
    builder.finish();
    batch.writes.push_back(std::move(write));
    batch.buffers.push_back(nullptr);
  }
  committing_revokes_.clear();
  if (!batch.writes.empty()) co_yield std::move(batch);
}

Steps Journal::write_metadata(std::uint32_t& transaction_checksum) {
  Transaction& transaction = *committing_;
  const bool sums_blocks = format_.has_block_checksums();
  while (!transaction.metadata.empty()) {
    step::WriteLog batch;
    batch.writes.push_back(new_control_block(take_log_block(), format_.block_size));
    batch.buffers.push_back(nullptr);
    BlockRef& descriptor = batch.writes.front().contents;
    // The builder writes into memory that nobody else holds: batch is not copied before finish().
    DescriptorBuilder tags(format_, transaction.tid, descriptor.mutate());
    while (BufferHead* const buffer = transaction.metadata.first()) {
      if (tags.full()) break;
      BlockRef image = buffer->frozen ? buffer->frozen : buffer->data;
      const bool escaped = needs_escape(image.bytes());
      if (escaped) escape(image.mutate());
      const std::uint32_t checksum =
          sums_blocks ? data_checksum(format_.seed, transaction.tid, image.bytes()) : 0;
      tags.add(buffer->block, escaped, checksum);
      batch.writes.push_back({take_log_block(), std::move(image)});
      batch.buffers.push_back(buffer);
      buffer->shadow = true;
      file(*buffer, transaction, BufferList::shadow);
    }
    tags.finish();
    if (format_.checksums == ChecksumMode::v1) {
      for (const LogWrite& write : batch.writes) {
        transaction_checksum =
            add_to_transaction_checksum(transaction_checksum, write.contents.bytes());
      }
    }
    co_yield std::move(batch);
  }
}

step::WriteCommit Journal::commit_record(std::uint32_t transaction_checksum) {
  step::WriteCommit record;
  record.write = new_control_block(take_log_block(), format_.block_size);
  build_commit(format_, committing_->tid, commit_time(), transaction_checksum,
               record.write.contents.mutate());
  record.preflush = record.fua = options_.barrier;
  return record;
}

// What was logged now waits for its way home, unless a later commit logs it again.
void Journal::finish_buffers(Transaction& transaction) {
  while (BufferHead* const buffer = transaction.forget.first()) {
    buffer->frozen = BlockRef();
    if (buffer->cp_transaction != nullptr) {
      ++buffer->cp_transaction->checkpoint_dropped;
      remove_checkpoint(*buffer);
    }
    // Freed in the transaction that now is committed: nobody wants its image any more.
    if (buffer->freed && buffer->next_transaction == nullptr) {
      buffer->freed = false;
      buffer->jbd_dirty = false;
    }
    if (buffer->jbd_dirty) {
      buffer->cp_transaction = &transaction;
      transaction.checkpoint.push_front(*buffer);
    }
    refile(*buffer);
  }
}

void Journal::finish_commit() {
  Transaction& transaction = *committing_;
  const Tid tid = transaction.tid;
  transaction.state = TransactionState::commit_callback;
  commit_sequence_ = tid;
  observer_.transaction_committed(transaction);
  observer_.commit_ended(transaction, tail_sequence_);
  transaction.state = TransactionState::finished;
  transaction.place = checkpoint_.insert(checkpoint_.end(), std::move(committing_));
  if (checkpoint_.back()->checkpoint.empty()) drop(*checkpoint_.back());
  observer_.wake(Wake::commit_done);
}

}  // namespace jbdlab::jbd2
