#include "jbd2/log_transaction_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "jbd2/format/csum.h"
#include "jbd2/format/revoke.h"

namespace jbdlab::jbd2 {
namespace {

// none < good < torn < bad, so that the worst of several is their maximum.
Verdict worse(Verdict a, Verdict b) noexcept {
  const auto rank = [](Verdict v) {
    switch (v) {
      case Verdict::none:
        return 0;
      case Verdict::good:
        return 1;
      case Verdict::torn:
        return 2;
      case Verdict::bad:
        return 3;
    }
    return 0;
  };
  return rank(a) >= rank(b) ? a : b;
}

}  // namespace

TransactionReader::TransactionReader(const ScanContext& context, Tid tid, LogBlock first)
    : context_(&context), findings_(context.options.max_findings), sum_(kTransactionChecksumSeed) {
  transaction_.tid = tid;
  transaction_.first = first;
}

Verdict TransactionReader::tail_verdict(ByteSpan block) const {
  if (!context_->format.has_block_checksums()) return Verdict::none;
  return tail_checksum_ok(context_->format.seed, block) ? Verdict::good : Verdict::bad;
}

void TransactionReader::check_place(FsBlock block, LogBlock at) {
  const LogReadOptions& options = context_->options;
  const FindingPlace place{transaction_.tid, at, block};
  if (options.fs_block_count && block.value() >= *options.fs_block_count) {
    block_unusable_ = true;
    findings_.add(finding::kTagOutOfRange, place,
                  fmt::format("block {}, and the file system has {}", block.value(),
                              *options.fs_block_count));
    return;
  }
  const auto& own = options.journal_blocks;
  const auto behind = std::ranges::upper_bound(own, block, {}, &FsBlockRange::first);
  if (behind != own.begin() && block < std::prev(behind)->end) {
    block_unusable_ = true;
    findings_.add(finding::kTagInJournal, place, fmt::format("block {}", block.value()));
  }
}

void TransactionReader::data_block(const Tag& tag, LogBlock at, LoggedBlock& logged) {
  const LogFormat& format = context_->format;
  if (format.checksums == ChecksumMode::none) return;
  const auto bytes = context_->source.read(at);
  if (!bytes) {
    logged.checksum = Verdict::bad;
    block_unusable_ = true;
    findings_.add(finding::kUnreadableBlock, {transaction_.tid, at, tag.fs_block},
                  bytes.error().what);
    return;
  }
  if (format.checksums == ChecksumMode::v1) {
    sum_ = add_to_transaction_checksum(sum_, *bytes);
    return;
  }
  const std::uint32_t sum = data_checksum(format.seed, transaction_.tid, *bytes);
  if (tag_checksum_matches(format.tag, tag, sum)) {
    logged.checksum = Verdict::good;
    return;
  }
  logged.checksum = Verdict::bad;
  block_unusable_ = true;
  findings_.add(finding::kDataChecksum, {transaction_.tid, at, tag.fs_block},
                fmt::format("the tag of block {} says {:x}, the logged block gives {:08x}",
                            tag.fs_block.value(), tag.checksum, sum));
}

bool TransactionReader::descriptor(ByteSpan block, RingCursor& cursor, bool stop_at_control) {
  const LogBlock at = cursor.at();
  const auto parsed = parse_descriptor(context_->format, block, tags_);
  CHECK(parsed.has_value());  // the caller has seen the header, and the source its block size
  const Verdict verdict = tail_verdict(block);
  transaction_.control.push_back({at, BlockType::descriptor, verdict});
  transaction_.control_checksum = worse(transaction_.control_checksum, verdict);
  if (verdict == Verdict::bad) {
    findings_.add(finding::kDescriptorChecksum, {transaction_.tid, at, std::nullopt});
  }
  if (context_->format.checksums == ChecksumMode::v1) {
    sum_ = add_to_transaction_checksum(sum_, block);
  }
  cursor.step();
  const LogReadOptions& options = context_->options;
  const bool has_places = options.fs_block_count || !options.journal_blocks.empty();
  for (const Tag& tag : tags_) {
    if (cursor.done()) return false;
    if (stop_at_control) {
      const auto bytes = context_->source.read(cursor.at());
      if (bytes && BlockHeader::parse(*bytes)) return false;
    }
    LoggedBlock logged{tag.fs_block, cursor.at(), tag.flags, Verdict::none};
    if (has_places) check_place(tag.fs_block, cursor.at());
    data_block(tag, cursor.at(), logged);
    transaction_.data_checksum = worse(transaction_.data_checksum, logged.checksum);
    transaction_.blocks.push_back(logged);
    cursor.step();
  }
  return true;
}

void TransactionReader::revoke(ByteSpan block, RingCursor& cursor) {
  const LogBlock at = cursor.at();
  const Verdict verdict = tail_verdict(block);
  transaction_.control.push_back({at, BlockType::revoke, verdict});
  transaction_.control_checksum = worse(transaction_.control_checksum, verdict);
  if (verdict == Verdict::bad) {
    findings_.add(finding::kRevokeChecksum, {transaction_.tid, at, std::nullopt});
  }
  if (const auto parsed = parse_revoke(context_->format, block, revoked_); !parsed) {
    revoke_unusable_ = true;
    findings_.add(finding::kRevokeCount, {transaction_.tid, at, std::nullopt}, parsed.error().what);
  }
  for (const FsBlock b : revoked_) transaction_.revoked.push_back({b, at});
  cursor.step();
}

void TransactionReader::commit(ByteSpan block, RingCursor& cursor) {
  const auto parsed = CommitBlock::parse(block);
  CHECK(parsed.has_value());
  const LogFormat& format = context_->format;
  Verdict verdict = Verdict::none;
  if (format.checksums == ChecksumMode::v1) {
    // All zero: the transaction was committed before the feature was switched on.
    const bool unused =
        parsed->checksum_type() == 0 && parsed->checksum_size() == 0 && parsed->checksum() == 0;
    const bool matches = parsed->checksum_type() == CommitBlock::kChecksumTypeCrc32 &&
                         parsed->checksum_size() == CommitBlock::kChecksumSizeCrc32 &&
                         parsed->checksum() == sum_;
    verdict = matches ? Verdict::good : unused ? Verdict::none : Verdict::bad;
    transaction_.data_checksum = verdict;
  } else if (format.has_block_checksums()) {
    const std::uint32_t stored = parsed->checksum();
    verdict = commit_checksum(format.seed, block) == stored        ? Verdict::good
              : commit_checksum_torn(format.seed, block) == stored ? Verdict::torn
                                                                   : Verdict::bad;
  }
  transaction_.control.push_back({cursor.at(), BlockType::commit, verdict});
  transaction_.commit = cursor.at();
  transaction_.time = parsed->time();
  transaction_.commit_checksum = verdict;
  cursor.step();
}

void TransactionReader::report() {
  for (Finding& f : std::move(findings_).finish()) context_->findings.add(std::move(f));
  findings_ = FindingLog(context_->options.max_findings);
}

}  // namespace jbdlab::jbd2
