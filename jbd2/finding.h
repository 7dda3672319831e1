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
// Other layers define kinds of their own. docs/findings.md lists them all.
struct FindingKind {
  std::string_view id;  // kebab-case, stable: scripts use it
  Severity severity;
  std::string_view sentence;
  std::string_view advice = {};  // what to do about it
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

// The findings of the journal itself: what each kind is called, how bad it is, what it says
// and what to do.
namespace finding {
using enum Severity;

// The superblock.
inline constexpr FindingKind kSuperblockMagic{
    "superblock-magic", error, "the journal superblock is not one",
    "look at the place with a hex dump; if it is lost, tune2fs -O ^has_journal and then -j make a "
    "new journal, without what the old one held"};
inline constexpr FindingKind kSuperblockChecksum{
    "superblock-checksum", error, "the checksum of the journal superblock does not match",
    "let e2fsck reset the journal on a copy; what it held is lost then"};
inline constexpr FindingKind kSuperblockBlockSize{
    "superblock-block-size", error,
    "the journal superblock names another block size than the file system",
    "this is the journal of another file system, or damaged: let e2fsck reset it on a copy"};
inline constexpr FindingKind kSuperblockLength{
    "superblock-length", error, "the journal superblock names more blocks than the journal has",
    "the image may be cut off, or the superblock is damaged: compare the lengths, then let e2fsck "
    "reset the journal on a copy"};
inline constexpr FindingKind kSuperblockFirst{"superblock-first", error,
                                              "the first block of the log is outside the journal",
                                              "let e2fsck reset the journal on a copy"};
inline constexpr FindingKind kSuperblockStart{"superblock-start", error,
                                              "the start of the log is outside its ring",
                                              "let e2fsck reset the journal on a copy"};
inline constexpr FindingKind kSuperblockFeatures{
    "superblock-features", error, "the journal has features that are not known",
    "use the newer software that wrote it, or look for damage: no reader can know what such a log "
    "means"};
inline constexpr FindingKind kSuperblockChecksumConflict{
    "superblock-checksum-conflict", error,
    "the journal superblock asks for checksums that exclude each other",
    "let e2fsck reset the journal on a copy"};
inline constexpr FindingKind kSuperblockChecksumType{
    "superblock-checksum-type", error, "the journal's checksums are of an unknown type",
    "let e2fsck reset the journal on a copy"};
inline constexpr FindingKind kSuperblockFastCommitArea{
    "superblock-fast-commit-area", error, "the fast-commit area leaves no room for the log",
    "let e2fsck reset the journal on a copy"};
inline constexpr FindingKind kJournalTooSmall{
    "journal-too-small", warning, "the journal is smaller than Linux accepts",
    "after recovery, make a larger one: tune2fs -O ^has_journal, then tune2fs -J size="};
inline constexpr FindingKind kJournalErrno{
    "journal-errno", warning, "the journal was aborted after an error",
    "recover, then run e2fsck -f, which also clears the error; look for the cause in the kernel's "
    "messages of that time"};
inline constexpr FindingKind kHeadOutOfRange{
    "head-out-of-range", warning,
    "the head of the log that a clean unmount left is outside its ring",
    "nothing: the next mount begins at the first block of the ring"};

// The ring.
inline constexpr FindingKind kUnreadableBlock{"unreadable-block", error,
                                              "a block of the log cannot be read",
                                              "copy the device with ddrescue and work on the copy"};
inline constexpr FindingKind kDescriptorChecksum{
    "descriptor-checksum", error, "the checksum of a descriptor block does not match",
    "recover a copy and run e2fsck -f on it: the transactions from this one on are lost"};
inline constexpr FindingKind kRevokeChecksum{
    "revoke-checksum", error, "the checksum of a revoke block does not match",
    "recover a copy and run e2fsck -f on it: the transactions from this one on are lost"};
inline constexpr FindingKind kRevokeCount{"revoke-count", error,
                                          "a revoke block has an impossible length",
                                          "recover a copy and run e2fsck -f on it"};
inline constexpr FindingKind kCommitChecksum{
    "commit-checksum", error, "the checksum of a commit block does not match",
    "recover a copy and run e2fsck -f on it: this transaction and those behind it are lost"};
inline constexpr FindingKind kCommitTorn{
    "commit-torn", note,
    "the checksum of a commit block matches only if all behind its header counts as zero",
    "nothing: Linux 6.11 and later take such a commit"};
inline constexpr FindingKind kTransactionChecksum{
    "transaction-checksum", error,
    "the blocks of a transaction do not match the checksum in its commit block",
    "recover a copy and run e2fsck -f on it: this transaction and those behind it are lost"};
inline constexpr FindingKind kDataChecksum{
    "data-checksum", error, "a logged block does not match the checksum in its tag",
    "recover a copy and run e2fsck -f on it: this block keeps its old contents"};
inline constexpr FindingKind kTagOutOfRange{
    "tag-out-of-range", error, "a tag points outside the file system",
    "recover a copy and run e2fsck -f on it: the block is not written"};
inline constexpr FindingKind kTagInJournal{
    "tag-in-journal", error, "a tag points into the journal itself",
    "recover a copy and run e2fsck -f on it: the block is not written"};
inline constexpr FindingKind kUnknownBlockType{
    "unknown-block-type", error, "a block of the log has the expected tid and an unknown type",
    "recover a copy and run e2fsck -f on it: the log ends there"};
inline constexpr FindingKind kLogLoops{"log-loops", error,
                                       "the log goes round its ring without an end",
                                       "do not mount it: Linux 6.18 follows such a log for ever; "
                                       "let e2fsck reset the journal on a copy"};
inline constexpr FindingKind kTransactionHole{
    "transaction-hole", error, "a block of the log is damaged or missing, and the log goes on",
    "recover a copy and run e2fsck -f on it: what lies behind the hole is lost"};
inline constexpr FindingKind kUnreachable{
    "unreachable", warning, "a transaction is there, but recovery stops before it",
    "see what stops recovery before it; log --all shows what it holds"};
inline constexpr FindingKind kInterrupted{
    "interrupted", note, "an asynchronous commit was interrupted",
    "nothing: the transaction was not complete when power went"};

// The fast-commit area.
inline constexpr FindingKind kFastCommitChecksum{
    "fast-commit-checksum", warning, "the checksum of a fast commit does not match",
    "recover a copy: the fast commits before it are taken, this one and those behind it are lost"};
inline constexpr FindingKind kFastCommitTlv{
    "fast-commit-tlv", warning, "a fast commit breaks off at something that is no TLV",
    "nothing: it is what a crash leaves of a fast commit that was being written"};
inline constexpr FindingKind kFastCommitTorn{
    "fast-commit-torn", warning,
    "the first fast commit has no valid end: Linux 6.18 and e2fsck 1.47 give up on such a journal",
    "do not mount it with Linux 6.18 but recover a copy: the log itself is sound"};
inline constexpr FindingKind kFastCommitFeatures{
    "fast-commit-features", error, "the fast commits have features that are not known",
    "use the newer software that wrote it; the log itself can be recovered without its fast "
    "commits"};
inline constexpr FindingKind kFastCommitHole{
    "fast-commit-hole", warning,
    "a fast commit is damaged, and the ones behind it are lost with it",
    "recover a copy: the fast commits before it are taken"};
inline constexpr FindingKind kFastCommitAreaFull{
    "fast-commit-area-full", warning,
    "the fast-commit area is full: Linux 6.18 refuses to mount such a journal",
    "do not mount it with Linux 6.18 but recover a copy: all its fast commits are sound"};
inline constexpr FindingKind kFastCommitUnreachable{
    "fast-commit-unreachable", warning,
    "fast commits are there, but recovery stops before them in the log",
    "see what stops recovery before them; they describe what comes after the lost transactions"};

inline constexpr FindingKind kMoreFindings{
    "more-findings", note, "there are more findings",
    "mend what is listed first; damage of one cause repeats"};
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
