// Handles: how a change gets room in the running transaction, and gives back what it did not use.
// Source: fs/jbd2/transaction.c (start_this_handle, add_transaction_credits, jbd2_journal_stop).

#include <memory>

#include "base/check.h"
#include "jbd2/format/revoke.h"
#include "jbd2/machine/journal.h"

namespace jbdlab::jbd2 {
namespace {

std::uint32_t round_up_divide(std::uint32_t n, std::uint32_t by) { return (n + by - 1) / by; }

}  // namespace

void Journal::prepare(Handle& handle, const Handle::Request& request) const {
  handle.type = request.type;
  handle.requested_credits =
      request.credits + round_up_divide(request.revoke_records, RevokeBuilder::capacity(format_));
  handle.credits = handle.requested_credits;
  handle.revoke_requested = request.revoke_records;
  handle.revoke_credits = request.revoke_records;
}

void Journal::create_transaction() {
  running_ = std::make_unique<Transaction>(next_tid_, now_, now_ + options_.commit_interval);
  running_->outstanding_credits = std::int64_t{overhead()} + reserved_credits_;
  next_tid_ = next_tid_.next();
  observer_.transaction_created(*running_);
}

Journal::Start Journal::add_credits(Handle& handle) {
  if (running_->state != TransactionState::running) return Start::wait_transaction;
  const std::int64_t own = handle.credits;
  const std::int64_t extra = handle.reserved != nullptr ? handle.reserved->credits : 0;
  const std::int64_t total = own + extra;
  const std::int64_t limit = max_handle_credits();
  if (running_->outstanding_credits + total > max_transaction_) {
    if (reserved_credits_ + total > limit) return Start::wait_reserved;
    request_commit(running_->tid);
    return Start::wait_transaction;
  }
  if (space_left() < max_transaction_) {
    if (reserved_credits_ + total > limit) return Start::wait_reserved;
    return Start::wait_space;
  }
  if (extra > 0 && reserved_credits_ + extra > limit / 2) return Start::wait_reserved;
  running_->outstanding_credits += total;
  reserved_credits_ += static_cast<std::uint32_t>(extra);
  return Start::started;
}

Journal::Start Journal::start(Handle& handle, Time now) {
  now_ = now;
  CHECK(handle.transaction == nullptr && !handle.is_reserved);
  CHECK(handle.credits <= max_handle_credits());
  if (!running_) create_transaction();
  const Start result = add_credits(handle);
  if (result != Start::started) return result;
  if (handle.reserved != nullptr) handle.reserved->is_reserved = true;
  handle.transaction = running_.get();
  ++running_->updates;
  ++running_->handles;
  return Start::started;
}

Journal::Start Journal::start_reserved(Handle& handle, Time now) {
  now_ = now;
  CHECK(handle.is_reserved);
  if (!running_) create_transaction();
  // It may still join a locked transaction: its credits are part of it already.
  if (running_->state == TransactionState::switching) return Start::wait_transaction;
  handle.is_reserved = false;
  handle.requested_credits = static_cast<std::uint32_t>(handle.credits);
  give_back_reserved(handle.requested_credits);
  handle.transaction = running_.get();
  ++running_->updates;
  ++running_->handles;
  return Start::started;
}

Handle* Journal::detach_reserved(Handle& handle) noexcept {
  return std::exchange(handle.reserved, nullptr);
}

void Journal::give_back_reserved(std::uint32_t credits) {
  CHECK(reserved_credits_ >= credits);
  reserved_credits_ -= credits;
  observer_.wake(Wake::reserved);
}

void Journal::drop_reserved(Handle& handle) {
  CHECK(handle.is_reserved);
  handle.is_reserved = false;
  give_back_reserved(static_cast<std::uint32_t>(handle.credits));
  if (running_) running_->outstanding_credits -= handle.credits;
}

bool Journal::extend(Handle& handle, std::uint32_t credits) {
  Transaction& transaction = *handle.transaction;
  if (transaction.state != TransactionState::running) return false;
  if (transaction.outstanding_credits + credits > max_transaction_) return false;
  transaction.outstanding_credits += credits;
  handle.credits += credits;
  handle.requested_credits += credits;
  return true;
}

void Journal::stop(Handle& handle, Time now) {
  now_ = now;
  CHECK(handle.transaction != nullptr && handle.nesting == 1);
  Transaction& transaction = *handle.transaction;
  observer_.handle_stopped(handle, transaction.tid);
  if (handle.sync) transaction.synchronous = true;
  if (handle.sync || now >= transaction.expires) request_commit(transaction.tid);
  leave(handle);
}

void Journal::restart(Handle& handle, const Handle::Request& request, Time now) {
  now_ = now;
  CHECK(handle.transaction != nullptr);
  const Tid tid = handle.transaction->tid;
  leave(handle);
  request_commit(tid);
  prepare(handle, request);
}

// Takes the handle out of its transaction, which gets back what the handle did not use.
void Journal::leave(Handle& handle) {
  Transaction& transaction = *handle.transaction;
  const auto revokes = static_cast<std::uint32_t>(handle.revoke_requested - handle.revoke_credits);
  if (revokes > 0) {  // blocks for revoke records stay taken, as far as the transaction fills them
    const std::uint32_t per_block = RevokeBuilder::capacity(format_);
    const std::uint32_t before = round_up_divide(transaction.outstanding_revokes, per_block);
    transaction.outstanding_revokes += revokes;
    handle.credits -= round_up_divide(transaction.outstanding_revokes, per_block) - before;
  }
  transaction.outstanding_credits -= handle.credits;
  if (handle.reserved != nullptr && handle.reserved->is_reserved) {
    handle.reserved->is_reserved = false;
    give_back_reserved(static_cast<std::uint32_t>(handle.reserved->credits));
    transaction.outstanding_credits -= handle.reserved->credits;
  }
  handle.transaction = nullptr;
  CHECK(transaction.updates > 0);
  if (--transaction.updates == 0) observer_.wake(Wake::updates_finished);
}

}  // namespace jbdlab::jbd2
