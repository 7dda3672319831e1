#include "jbd2/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace jbdlab::jbd2 {

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "";
}

std::span<const FindingKind* const> finding_kinds() noexcept {
  using namespace finding;
  static constexpr std::array kKinds{&kSuperblockMagic,
                                     &kSuperblockChecksum,
                                     &kSuperblockBlockSize,
                                     &kSuperblockLength,
                                     &kSuperblockFirst,
                                     &kSuperblockStart,
                                     &kSuperblockFeatures,
                                     &kSuperblockChecksumConflict,
                                     &kSuperblockChecksumType,
                                     &kSuperblockFastCommitArea,
                                     &kJournalTooSmall,
                                     &kJournalErrno,
                                     &kHeadOutOfRange,
                                     &kUnreadableBlock,
                                     &kDescriptorChecksum,
                                     &kRevokeChecksum,
                                     &kRevokeCount,
                                     &kCommitChecksum,
                                     &kCommitTorn,
                                     &kTransactionChecksum,
                                     &kDataChecksum,
                                     &kTagOutOfRange,
                                     &kTagInJournal,
                                     &kUnknownBlockType,
                                     &kLogLoops,
                                     &kTransactionHole,
                                     &kUnreachable,
                                     &kInterrupted,
                                     &kFastCommitChecksum,
                                     &kFastCommitTlv,
                                     &kFastCommitTorn,
                                     &kFastCommitFeatures,
                                     &kFastCommitHole,
                                     &kFastCommitAreaFull,
                                     &kFastCommitUnreachable,
                                     &kMoreFindings};
  return kKinds;
}

void FindingLog::add(const FindingKind& kind, FindingPlace place, std::string_view detail) {
  if (findings_.size() >= limit_) {
    ++suppressed_;
    worst_suppressed_ = std::max(worst_suppressed_, kind.severity);
    return;
  }
  std::string text(kind.sentence);
  if (!detail.empty()) text += fmt::format(": {}", detail);
  findings_.push_back({&kind, kind.severity, place, std::move(text)});
}

void FindingLog::add(Finding finding) {
  if (findings_.size() >= limit_) {
    ++suppressed_;
    worst_suppressed_ = std::max(worst_suppressed_, finding.severity);
    return;
  }
  findings_.push_back(std::move(finding));
}

std::vector<Finding> FindingLog::finish() && {
  if (suppressed_ != 0) {
    findings_.push_back({&finding::kMoreFindings,
                         worst_suppressed_,
                         {},
                         fmt::format("{}: {}", finding::kMoreFindings.sentence, suppressed_)});
  }
  return std::move(findings_);
}

}  // namespace jbdlab::jbd2
