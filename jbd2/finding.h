#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

// Findings: what is wrong, or worth knowing, about a journal. A damaged journal is no error for
// whoever reads it but a result.
namespace jbdlab::jbd2 {

enum class Severity : std::uint8_t {
  note,     // nothing is wrong; explains what was read
  warning,  // something was lost or is not as it should be, and recovery copes
  error,    // damage: recovery loses or refuses something
};
std::string_view to_string(Severity severity) noexcept;

// One kind of finding. There is one object of each kind, in a table; kinds are compared by address.
// Other layers define kinds of their own.
struct FindingKind {
  std::string_view id;  // kebab-case, stable: scripts use it
  Severity severity;
  std::string_view sentence;
};

struct FindingPlace {
  std::optional<Tid> tid;
  std::optional<LogBlock> log_block;
  std::optional<FsBlock> fs_block;
  friend bool operator==(const FindingPlace&, const FindingPlace&) = default;
};

struct Finding {
  const FindingKind* kind = nullptr;
  Severity severity = Severity::note;  // its kind's, except for "more-findings"
  FindingPlace place;
  std::string text;  // the kind's sentence, with what was expected and what was found
};

// The findings of the journal itself.
namespace finding {
// The superblock.
extern const FindingKind kSuperblockMagic, kSuperblockChecksum, kSuperblockBlockSize,
    kSuperblockLength, kSuperblockFirst, kSuperblockStart, kSuperblockFeatures,
    kSuperblockChecksumConflict, kSuperblockChecksumType, kSuperblockFastCommitArea,
    kJournalTooSmall, kJournalErrno, kHeadOutOfRange;
// The ring.
extern const FindingKind kUnreadableBlock, kDescriptorChecksum, kRevokeChecksum, kRevokeCount,
    kCommitChecksum, kCommitTorn, kTransactionChecksum, kDataChecksum, kTagOutOfRange,
    kTagInJournal, kUnknownBlockType, kLogLoops, kTransactionHole, kUnreachable, kInterrupted;
// The fast-commit area.
extern const FindingKind kFastCommitChecksum, kFastCommitTlv, kFastCommitTorn,
    kFastCommitFeatures, kFastCommitHole, kFastCommitAreaFull, kFastCommitUnreachable;
extern const FindingKind kMoreFindings;
}  // namespace finding

// All of the above, in that order.
std::span<const FindingKind* const> finding_kinds() noexcept;

// Collects findings up to a limit; what comes after it is counted, and finish() adds one last
// finding "more-findings" that says how many.
class FindingLog {
 public:
  explicit FindingLog(std::size_t limit = 1000) : limit_(limit) {}

  // The text is the kind's sentence, then ": " and `detail` if there is any.
  void add(const FindingKind& kind, FindingPlace place = {}, std::string_view detail = {});
  // Takes one that somebody else collected.
  void add(Finding finding);
  bool empty() const noexcept { return findings_.empty(); }
  std::size_t count() const noexcept { return findings_.size() + suppressed_; }
  std::vector<Finding> finish() &&;

 private:
  std::size_t limit_;
  std::size_t suppressed_ = 0;
  Severity worst_suppressed_ = Severity::note;
  std::vector<Finding> findings_;
};

}  // namespace jbdlab::jbd2
