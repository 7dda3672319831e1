#include "jbd2/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace jbdlab::jbd2 {

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "";
}

// The table: what each kind is called, how bad it is and what it says.
namespace finding {
using enum Severity;

constinit const FindingKind kSuperblockMagic{
    "superblock-magic", error, "the journal superblock is not one"};
constinit const FindingKind kSuperblockChecksum{
    "superblock-checksum", error, "the checksum of the journal superblock does not match"};
constinit const FindingKind kSuperblockBlockSize{
    "superblock-block-size", error,
    "the journal superblock names another block size than the file system"};
constinit const FindingKind kSuperblockLength{
    "superblock-length", error, "the journal superblock names more blocks than the journal has"};
constinit const FindingKind kSuperblockFirst{
    "superblock-first", error, "the first block of the log is outside the journal"};
constinit const FindingKind kSuperblockStart{
    "superblock-start", error, "the start of the log is outside its ring"};
constinit const FindingKind kSuperblockFeatures{
    "superblock-features", error, "the journal has features that are not known"};
constinit const FindingKind kSuperblockChecksumConflict{
    "superblock-checksum-conflict", error,
    "the journal superblock asks for checksums that exclude each other"};
constinit const FindingKind kSuperblockChecksumType{
    "superblock-checksum-type", error, "the journal's checksums are of an unknown type"};
constinit const FindingKind kSuperblockFastCommitArea{
    "superblock-fast-commit-area", error, "the fast-commit area leaves no room for the log"};
constinit const FindingKind kJournalTooSmall{
    "journal-too-small", warning, "the journal is smaller than Linux accepts"};
constinit const FindingKind kJournalErrno{
    "journal-errno", warning, "the journal was aborted after an error"};
constinit const FindingKind kHeadOutOfRange{
    "head-out-of-range", warning,
    "the head of the log that a clean unmount left is outside its ring"};

constinit const FindingKind kUnreadableBlock{
    "unreadable-block", error, "a block of the log cannot be read"};
constinit const FindingKind kDescriptorChecksum{
    "descriptor-checksum", error, "the checksum of a descriptor block does not match"};
constinit const FindingKind kRevokeChecksum{
    "revoke-checksum", error, "the checksum of a revoke block does not match"};
constinit const FindingKind kRevokeCount{
    "revoke-count", error, "a revoke block has an impossible length"};
constinit const FindingKind kCommitChecksum{
    "commit-checksum", error, "the checksum of a commit block does not match"};
constinit const FindingKind kCommitTorn{
    "commit-torn", note,
    "the checksum of a commit block matches only if all behind its header counts as zero"};
constinit const FindingKind kTransactionChecksum{
    "transaction-checksum", error,
    "the blocks of a transaction do not match the checksum in its commit block"};
constinit const FindingKind kDataChecksum{
    "data-checksum", error, "a logged block does not match the checksum in its tag"};
constinit const FindingKind kTagOutOfRange{
    "tag-out-of-range", error, "a tag points outside the file system"};
constinit const FindingKind kTagInJournal{
    "tag-in-journal", error, "a tag points into the journal itself"};
constinit const FindingKind kUnknownBlockType{
    "unknown-block-type", error, "a block of the log has the expected tid and an unknown type"};
constinit const FindingKind kLogLoops{
    "log-loops", error, "the log goes round its ring without an end"};
constinit const FindingKind kTransactionHole{
    "transaction-hole", error, "a block of the log is damaged or missing, and the log goes on"};
constinit const FindingKind kUnreachable{
    "unreachable", warning, "a transaction is there, but recovery stops before it"};
constinit const FindingKind kInterrupted{
    "interrupted", note, "an asynchronous commit was interrupted"};

constinit const FindingKind kFastCommitChecksum{
    "fast-commit-checksum", warning, "the checksum of a fast commit does not match"};
constinit const FindingKind kFastCommitTlv{
    "fast-commit-tlv", warning, "a fast commit breaks off at something that is no TLV"};
constinit const FindingKind kFastCommitTorn{
    "fast-commit-torn", warning,
    "the first fast commit has no valid end: Linux 6.18 and e2fsck 1.47 give up on such a journal"};
constinit const FindingKind kFastCommitFeatures{
    "fast-commit-features", error, "the fast commits have features that are not known"};
constinit const FindingKind kFastCommitHole{
    "fast-commit-hole", warning,
    "a fast commit is damaged, and the ones behind it are lost with it"};
constinit const FindingKind kFastCommitAreaFull{
    "fast-commit-area-full", warning,
    "the fast-commit area is full: Linux 6.18 refuses to mount such a journal"};
constinit const FindingKind kFastCommitUnreachable{
    "fast-commit-unreachable", warning,
    "fast commits are there, but recovery stops before them in the log"};

constinit const FindingKind kMoreFindings{"more-findings", note, "there are more findings"};
}  // namespace finding

std::span<const FindingKind* const> finding_kinds() noexcept {
  using namespace finding;
  static constexpr std::array kKinds{
      &kSuperblockMagic,    &kSuperblockChecksum,         &kSuperblockBlockSize,
      &kSuperblockLength,   &kSuperblockFirst,            &kSuperblockStart,
      &kSuperblockFeatures, &kSuperblockChecksumConflict, &kSuperblockChecksumType,
      &kSuperblockFastCommitArea, &kJournalTooSmall, &kJournalErrno, &kHeadOutOfRange,
      &kUnreadableBlock,    &kDescriptorChecksum,         &kRevokeChecksum,
      &kRevokeCount,        &kCommitChecksum,             &kCommitTorn,
      &kTransactionChecksum, &kDataChecksum,              &kTagOutOfRange,
      &kTagInJournal,       &kUnknownBlockType,           &kLogLoops,
      &kTransactionHole,    &kUnreachable,                &kInterrupted,
      &kFastCommitChecksum, &kFastCommitTlv,              &kFastCommitTorn,
      &kFastCommitFeatures, &kFastCommitHole,             &kFastCommitAreaFull,
      &kFastCommitUnreachable, &kMoreFindings};
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
    findings_.push_back({&finding::kMoreFindings, worst_suppressed_, {},
                         fmt::format("{}: {}", finding::kMoreFindings.sentence, suppressed_)});
  }
  return std::move(findings_);
}

}  // namespace jbdlab::jbd2
