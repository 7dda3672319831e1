#include "jbd2/log_ring_scan.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "jbd2/format/csum.h"
#include "jbd2/log_transaction_reader.h"

namespace jbdlab::jbd2 {
namespace {

// The walk over the live log: the kernel's PASS_SCAN, and a look at what lies behind its end.
class LiveScan {
 public:
  LiveScan(const ScanContext& context, Tid sequence, LogBlock start)
      : context_(context),
        cursor_(context.geometry, start, context.geometry.count()),
        expected_(sequence),
        reader_(context, sequence, start) {
    scan_.end_block = start;
  }

  RingScan run() {
    while (step()) {
    }
    if (reader_.begun()) leave_incomplete();
    if (!end_known_) end_ = expected_;
    if (!unreadable_) look_behind_end();
    scan_.end = end_;
    scan_.rest_first = cursor_.at();
    scan_.rest_count = cursor_.left();
    return std::move(scan_);
  }

 private:
  // One control block and what belongs to it. False: the walk ends here.
  bool step() {
    if (cursor_.done()) {
      if (reader_.begun()) report_loop();
      return false;
    }
    const LogBlock at = cursor_.at();
    const auto block = context_.source.read(at);
    if (!block) {
      context_.findings.add(finding::kUnreadableBlock, {expected_, at, std::nullopt},
                            block.error().what);
      unreadable_ = scan_.failed = true;
      return false;
    }
    const auto header = BlockHeader::parse(*block);
    if (!header || header->tid != expected_) return false;
    switch (header->type) {
      case BlockType::descriptor:
        if (reader_.descriptor(*block, cursor_)) return true;
        report_loop();
        return false;
      case BlockType::revoke:
        reader_.revoke(*block, cursor_);
        return true;
      case BlockType::commit:
        return commit(*block);
      default:
        context_.findings.add(finding::kUnknownBlockType, {expected_, at, std::nullopt},
                              fmt::format("type {}", static_cast<std::uint32_t>(header->type)));
        scan_.failed = true;
        return false;
    }
  }

  bool commit(ByteSpan block) {
    const RingCursor before = cursor_;
    reader_.commit(block, cursor_);
    LogTransaction& t = reader_.transaction();
    if (interrupted_) return commit_behind_interrupted(before);
    // A commit time that goes back shows a leftover of an earlier life of the journal, whose other
    // checksums cannot match; the first transaction has nothing to be compared with.
    const std::uint64_t commit_s = t.time.value_or(CommitTime{}).seconds;
    const bool older = commit_s < last_commit_s_;
    const bool bad_commit = t.commit_checksum == Verdict::bad;
    if ((reader_.suspect() || bad_commit) && older) return leave_leftover(before);
    if (reader_.suspect() || reader_.revoke_unusable()) return fail_transaction();
    if (bad_commit) {
      add_commit_finding(t);
      if (!context_.format.async_commit) return fail_transaction();
      return suspend_transaction();
    }
    if (t.commit_checksum == Verdict::torn) {
      context_.findings.add(finding::kCommitTorn, {t.tid, t.commit, std::nullopt});
    }
    reader_.report();
    t.before_end = true;
    t.state = reader_.block_unusable() ? LogState::corrupt : LogState::replayable;
    last_commit_s_ = commit_s;
    scan_.end_block = cursor_.at();
    close_transaction();
    return true;
  }

  void add_commit_finding(const LogTransaction& t) {
    const bool v1 = context_.format.checksums == ChecksumMode::v1;
    reader_.findings().add(v1 ? finding::kTransactionChecksum : finding::kCommitChecksum,
                           {t.tid, t.commit, std::nullopt});
  }

  // Moves the transaction in hand to the result and begins the next one at the cursor.
  void close_transaction() {
    scan_.transactions.push_back(std::move(reader_.transaction()));
    expected_ = expected_.next();
    reader_ = TransactionReader(context_, expected_, cursor_.at());
  }

  void set_end() {
    end_ = expected_;
    end_known_ = true;
  }

  // Damage that recovery cannot pass: the log ends before this transaction.
  bool fail_transaction() {
    reader_.report();
    reader_.transaction().state = LogState::corrupt;
    set_end();
    scan_.failed = true;
    close_transaction();
    return false;
  }

  // With asynchronous commits the commit block may reach the disk before the blocks that it
  // covers, so a bad checksum is the sign of an interrupted commit, unless another one follows.
  bool suspend_transaction() {
    set_end();
    reader_.transaction().state = LogState::incomplete;
    interrupted_ = std::make_unique<TransactionReader>(std::move(reader_));
    expected_ = expected_.next();
    reader_ = TransactionReader(context_, expected_, cursor_.at());
    return true;
  }

  bool commit_behind_interrupted(const RingCursor& before_commit) {
    const bool v1 = context_.format.checksums == ChecksumMode::v1;  // knows no sum from here on
    if (!v1 && reader_.transaction().commit_checksum == Verdict::bad) {
      return leave_leftover(before_commit);
    }
    interrupted_->report();
    interrupted_->transaction().state = LogState::corrupt;
    scan_.failed = true;
    scan_.transactions.push_back(std::move(interrupted_->transaction()));
    interrupted_.reset();
    leave_unreachable();
    return false;
  }

  bool leave_leftover(const RingCursor& before_commit) {
    // Everything from its first block on is an older generation; the rest of the ring begins there.
    const LogBlock first = reader_.transaction().first;
    const std::uint32_t back = context_.geometry.distance(first, before_commit.at());
    cursor_ = RingCursor(context_.geometry, first, before_commit.left() + back);
    reader_ = TransactionReader(context_, expected_, first);
    leftover_ = true;
    return false;
  }

  // The transaction in hand has no commit block: the crash came first.
  void leave_incomplete() {
    LogTransaction& t = reader_.transaction();
    t.state = scan_.failed ? LogState::corrupt : LogState::incomplete;
    if (interrupted_) add_interrupted();
    scan_.transactions.push_back(std::move(t));
    reader_ = TransactionReader(context_, expected_, cursor_.at());
  }

  void add_interrupted() {
    const LogTransaction& t = interrupted_->transaction();
    context_.findings.add(finding::kInterrupted, {t.tid, t.commit, std::nullopt});
    scan_.transactions.push_back(std::move(interrupted_->transaction()));
    interrupted_.reset();
  }

  void leave_unreachable() {
    LogTransaction& t = reader_.transaction();
    t.state = LogState::corrupt;
    context_.findings.add(finding::kUnreachable, {t.tid, t.commit, std::nullopt},
                          fmt::format("transaction {}", t.tid.value()));
    close_transaction();
  }

  void report_loop() {
    looped_ = scan_.failed = true;
    context_.findings.add(
        finding::kLogLoops, {expected_, reader_.transaction().first, std::nullopt},
        fmt::format("transaction {} fills the {} blocks from block {} on", expected_.value(),
                    context_.geometry.count(), reader_.transaction().first.value()));
  }

  // Does the log go on behind the place where it ends? A sound log ends before an older
  // generation, or before zeros.
  void look_behind_end() {
    if (interrupted_) add_interrupted();
    if (looped_ || leftover_) return;
    if (!scan_.failed) {
      const auto evidence = find_continuation();
      if (!evidence) return;
      cursor_ = evidence->cursor;
      expected_ = evidence->tid;
      scan_.failed = true;
      context_.findings.add(
          finding::kTransactionHole, {end_, scan_.end_block, std::nullopt},
          fmt::format("transaction {} is not whole, and block {} belongs to transaction {}",
                      end_.value(), cursor_.at().value(), expected_.value()));
      reader_ = TransactionReader(context_, expected_, cursor_.at());
    }
    while (step_behind_end()) {
    }
  }

  struct Continuation {
    Tid tid;
    RingCursor cursor;
  };
  // The next control block of this generation that proves that something is missing: the commit
  // block of transaction `end`, which is written when all else is on the disk (not so with
  // asynchronous commits), or any block of the transaction after it. Looks from the end of the last
  // whole transaction on, also where a damaged descriptor may have led the walk astray (a logged
  // block never begins with the magic), and as far as the largest transaction reaches.
  std::optional<Continuation> find_continuation() const {
    const std::uint32_t back = context_.geometry.distance(scan_.end_block, cursor_.at());
    RingCursor cursor(context_.geometry, scan_.end_block, cursor_.left() + back);
    const std::uint32_t reach = context_.geometry.count() / 3 + 1;  // no transaction is longer
    for (std::uint32_t i = 0; i < back + reach && !cursor.done(); ++i, cursor.step()) {
      const auto block = context_.source.read(cursor.at());
      if (!block) return std::nullopt;
      const auto header = BlockHeader::parse(*block);
      if (!header) continue;
      if (header->tid == end_ && header->type != BlockType::commit) continue;
      if (!is_log_block(*header, *block)) continue;  // says nothing
      if (header->tid == end_.next()) return Continuation{header->tid, cursor};
      if (header->tid != end_ || context_.format.async_commit) return std::nullopt;
      return Continuation{header->tid, cursor};
    }
    return std::nullopt;
  }

  bool is_log_block(const BlockHeader& header, ByteSpan block) const {
    const LogFormat& format = context_.format;
    switch (header.type) {
      case BlockType::descriptor:
      case BlockType::revoke:
        return !format.has_block_checksums() || tail_checksum_ok(format.seed, block);
      case BlockType::commit: {
        if (!format.has_block_checksums()) return true;
        const auto commit = CommitBlock::parse(block);
        return commit && commit->checksum() == commit_checksum(format.seed, block);
      }
      default:
        return false;
    }
  }

  // Transactions that are there although recovery stops before them.
  bool step_behind_end() {
    if (cursor_.done()) return false;
    const auto block = context_.source.read(cursor_.at());
    if (!block) return false;
    const auto header = BlockHeader::parse(*block);
    if (!header || header->tid != expected_ || !is_log_block(*header, *block)) return false;
    switch (header->type) {
      case BlockType::descriptor:
        return reader_.descriptor(*block, cursor_, true);
      case BlockType::revoke:
        reader_.revoke(*block, cursor_);
        return true;
      default:
        reader_.commit(*block, cursor_);
        leave_unreachable();
        return true;
    }
  }

  const ScanContext& context_;
  RingScan scan_;
  RingCursor cursor_;
  Tid expected_;
  Tid end_;                 // first tid that recovery does not take,
  bool end_known_ = false;  // which may be known before the walk ends
  std::uint64_t last_commit_s_ = 0;
  TransactionReader reader_;
  std::unique_ptr<TransactionReader> interrupted_;  // its commit block did not match
  bool looped_ = false;
  bool leftover_ = false;  // the log ends before blocks of an earlier life
  bool unreadable_ = false;
};

}  // namespace

RingScan scan_live(const ScanContext& context, Tid sequence, LogBlock start) {
  return LiveScan(context, sequence, start).run();
}

std::vector<LogTransaction> scan_stale(const ScanContext& context, LogBlock first,
                                       std::uint32_t count) {
  std::vector<LogTransaction> found;
  std::unique_ptr<TransactionReader> reader;
  const auto close = [&] {
    if (!reader) return;
    reader->transaction().state = LogState::stale;
    found.push_back(std::move(reader->transaction()));
    reader.reset();
  };
  for (RingCursor cursor(context.geometry, first, count); !cursor.done();) {
    const auto block = context.source.read(cursor.at());
    const auto header = block ? BlockHeader::parse(*block) : std::nullopt;
    const bool known =
        header && (header->type == BlockType::descriptor || header->type == BlockType::revoke ||
                   header->type == BlockType::commit);
    if (!known) {  // a data block whose descriptor is overwritten, or nothing at all
      close();
      cursor.step();
      continue;
    }
    if (reader && reader->transaction().tid != header->tid) close();
    if (!reader) {
      reader = std::make_unique<TransactionReader>(context, header->tid, cursor.at());
    }
    switch (header->type) {
      case BlockType::descriptor:
        reader->descriptor(*block, cursor, true);
        break;
      case BlockType::revoke:
        reader->revoke(*block, cursor);
        break;
      default:
        reader->commit(*block, cursor);
        close();
        break;
    }
  }
  close();
  return found;
}

}  // namespace jbdlab::jbd2
