#include "jbd2/machine/journal.h"

#include "base/check.h"
#include "jbd2/format/descriptor.h"

namespace jbdlab::jbd2 {
namespace {

// Blocks of a transaction that are not metadata: the commit block and the descriptors of a
// transaction of the largest size. The kernel counts tags with 16 bytes of slack on top of the
// uuid (jbd2_descriptor_blocks_per_trans, fs/jbd2/journal.c).
std::uint32_t descriptor_overhead(const LogFormat& format, std::uint32_t max_transaction) {
  constexpr std::uint32_t kFixed = BlockHeader::kSize + 16;
  const std::uint32_t tag_space = format.block_size - kFixed - format.tail_size();
  const std::uint32_t tags_per_block = (tag_space - 16) / format.tag.size;
  return 1 + (max_transaction + tags_per_block - 1) / tags_per_block;
}

LogSuperblock with_features(LogSuperblock superblock, Features features) {
  Features all = superblock.features();
  all.compat |= features.compat;
  all.incompat |= features.incompat;
  superblock.set_features(all);
  return superblock;
}

}  // namespace

TransactionList& Transaction::list(BufferList which) {
  switch (which) {
    case BufferList::reserved:
      return reserved;
    case BufferList::metadata:
      return metadata;
    case BufferList::shadow:
      return shadow;
    case BufferList::forget:
      return forget;
    case BufferList::none:
      break;
  }
  CHECK(which != BufferList::none);
  return reserved;
}

Journal::Journal(LogSuperblock superblock, Features features, const JournalOptions& options,
                 JournalObserver& observer)
    : superblock_(with_features(superblock, features)),
      options_(options),
      observer_(observer),
      format_(LogFormat::of(superblock_)),
      geometry_(Geometry::of(superblock_)) {
  CHECK(superblock_.empty());
  max_transaction_ =
      (superblock_.block_count() - superblock_.fast_commit_blocks()) / options_.transaction_divisor;
  // The log goes on where it stopped (6.4 and later), at the front if that place is not in the
  // ring: a fast-commit area enabled since may have taken it.
  head_ = geometry_.contains(superblock_.head()) ? superblock_.head() : geometry_.first();
  tail_ = head_;
  free_ = geometry_.count();
  next_tid_ = superblock_.sequence().next();
  tail_sequence_ = next_tid_;
  commit_sequence_ = superblock_.sequence();
  commit_request_ = commit_sequence_;
}

Journal::~Journal() = default;

std::uint32_t Journal::overhead() const noexcept {
  return descriptor_overhead(format_, max_transaction_);
}

std::int64_t Journal::space_left() const noexcept {
  constexpr std::int64_t kSlack = 32;  // jbd2_log_space_left: room for a last checkpoint
  std::int64_t left = std::int64_t{free_} - kSlack;
  if (committing_) left -= committing_->outstanding_credits;
  return left > 0 ? left : 0;
}

CommitTime Journal::commit_time() const {
  const std::int64_t tick = options_.clock_tick.count();
  const std::int64_t since_start = now_.time_since_epoch().count() / tick * tick;
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {options_.epoch_seconds + static_cast<std::uint64_t>(since_start / kSecond),
          static_cast<std::uint32_t>(since_start % kSecond)};
}

void Journal::request_commit(Tid tid) {
  if (commit_request_ == tid || !running_ || running_->tid != tid) return;
  commit_request_ = tid;
  observer_.wake(Wake::commit_requested);
}

bool Journal::updates_finished() const noexcept {
  return !running_ || running_->state != TransactionState::locked || running_->updates == 0;
}

bool Journal::complete(Tid tid) {
  if (running_ && running_->tid == tid) {
    request_commit(tid);
    return true;
  }
  return committing_ && committing_->tid == tid;
}

std::optional<Tid> Journal::force_commit() { return start_commit(); }

std::optional<Tid> Journal::start_commit() {
  if (running_) {
    const Tid tid = running_->tid;
    request_commit(tid);
    return tid;
  }
  if (committing_) return committing_->tid;
  return std::nullopt;
}

Tid Journal::latest_transaction() const noexcept {
  return running_ ? running_->tid : commit_request_;
}

bool Journal::will_send_barrier(Tid tid) {
  if (!options_.barrier || committed(tid)) return false;
  if (committing_ && committing_->tid == tid) {
    if (committing_->state >= TransactionState::commit_jflush) return false;
    committing_->need_data_flush = true;
    return true;
  }
  if (running_ && running_->tid == tid) running_->need_data_flush = true;
  return true;
}

step::WriteSuperblock Journal::superblock_step(bool preflush, bool fua) {
  superblock_.update_checksum();
  BlockRef block = BlockRef::zeros(format_.block_size);
  superblock_.build(block.mutate());
  return {std::move(block), preflush && options_.barrier, fua && options_.barrier};
}

}  // namespace jbdlab::jbd2
