#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "jbd2/format/header.h"
#include "jbd2/log_ring_scan.h"

namespace jbdlab::jbd2 {

// Where a walk over the ring stands, and how far it may still go: no walk visits a block twice.
class RingCursor {
 public:
  RingCursor(const Geometry& geometry, LogBlock at, std::uint32_t limit)
      : geometry_(&geometry), at_(at), left_(limit) {}

  LogBlock at() const noexcept { return at_; }
  std::uint32_t left() const noexcept { return left_; }
  bool done() const noexcept { return left_ == 0; }
  void step() {
    CHECK(left_ > 0);
    at_ = geometry_->next(at_);
    --left_;
  }

 private:
  const Geometry* geometry_;
  LogBlock at_;
  std::uint32_t left_;
};

// Reads the blocks of one transaction, one control block at a time, and keeps what is wrong with
// them until somebody knows whether that matters: the blocks of a transaction without a commit
// block may well be half written.
class TransactionReader {
 public:
  TransactionReader(const ScanContext& context, Tid tid, LogBlock first);

  // A descriptor block, whose bytes are `block`, and the data blocks behind it; moves the cursor
  // behind them. False if the ring had no room for as many, or if `stop_at_control` and a data
  // block begins with the magic, which no logged block does: the cursor is then at that block.
  bool descriptor(ByteSpan block, RingCursor& cursor, bool stop_at_control = false);
  void revoke(ByteSpan block, RingCursor& cursor);
  void commit(ByteSpan block, RingCursor& cursor);

  bool begun() const noexcept { return !transaction_.control.empty(); }
  // A descriptor or revoke block with a wrong checksum: damage, or of an older life of the journal.
  bool suspect() const noexcept { return transaction_.control_checksum == Verdict::bad; }
  bool revoke_unusable() const noexcept { return revoke_unusable_; }
  bool block_unusable() const noexcept { return block_unusable_; }
  LogTransaction& transaction() noexcept { return transaction_; }
  FindingLog& findings() noexcept { return findings_; }
  // Hands the findings over.
  void report();

 private:
  Verdict tail_verdict(ByteSpan block) const;
  void data_block(const Tag& tag, LogBlock at, LoggedBlock& logged);
  void check_place(FsBlock block, LogBlock at);

  const ScanContext* context_;
  LogTransaction transaction_;
  FindingLog findings_;
  std::uint32_t sum_;  // v1
  bool revoke_unusable_ = false;
  bool block_unusable_ = false;  // a data block that recovery must not write home
  std::vector<Tag> tags_;        // scratch
  std::vector<FsBlock> revoked_;
};

}  // namespace jbdlab::jbd2
