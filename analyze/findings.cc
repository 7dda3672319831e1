#include "analyze/findings.h"

#include <array>

namespace jbdlab::analyze::finding {
namespace {
using enum jbd2::Severity;
}  // namespace

constinit const FindingKind kImageTruncated{"image-truncated", error,
                                            "the image ends before the file system does"};
constinit const FindingKind kFsSuperblockChecksum{
    "fs-superblock-checksum", error, "the checksum of the file system's superblock is wrong"};
constinit const FindingKind kFsUnknownFeature{
    "fs-unknown-feature", warning,
    "the file system has a feature that this program does not know, so what it says may be wrong"};
constinit const FindingKind kFsErrors{"fs-errors", warning,
                                      "the kernel found errors in this file system; run e2fsck"};
constinit const FindingKind kFsInterruptedReplay{
    "fs-interrupted-replay", warning,
    "a replay of fast commits was interrupted; the next mount does it again"};

constinit const FindingKind kJournalInodeBackup{
    "journal-inode-backup", warning,
    "the journal's inode cannot be used; its copy in the superblock is read instead"};
constinit const FindingKind kJournalMapping{"journal-mapping", error,
                                            "the block map of the journal's inode is damaged"};
constinit const FindingKind kJournalHole{"journal-hole", error,
                                         "the journal has blocks that are not mapped to the disk"};
constinit const FindingKind kJournalUnreadable{"journal-unreadable", error,
                                               "the journal's superblock cannot be read"};
constinit const FindingKind kJournalDeviceMissing{
    "journal-device-missing", note,
    "the journal is on a device of its own, which was not named (--journal)"};

constinit const FindingKind kRecoveryFlagClear{"recovery-flag-clear", warning,
                                               "the log is not empty, but the file system does not "
                                               "ask for recovery: the kernel throws the log "
                                               "away, e2fsck offers to replay it"};
constinit const FindingKind kRecoveryFlagOnly{
    "recovery-flag-only", note,
    "the file system asks for recovery, and the log is empty: there is nothing to replay"};
constinit const FindingKind kFastCommitLeftOn{"fast-commit-left-on", warning,
                                              "the journal has fast commits and the file system's "
                                              "feature is off: e2fsck does not replay them"};
constinit const FindingKind kHeadInFastCommitArea{
    "head-in-fast-commit-area", warning,
    "the log's head lies where the fast-commit area will be after the next mount: the kernel then "
    "writes past the ring and aborts the journal"};

namespace {
constexpr std::array kKinds{
    &kImageTruncated,      &kFsSuperblockChecksum, &kFsUnknownFeature,  &kFsErrors,
    &kFsInterruptedReplay, &kJournalInodeBackup,   &kJournalMapping,    &kJournalHole,
    &kJournalUnreadable,   &kJournalDeviceMissing, &kRecoveryFlagClear, &kRecoveryFlagOnly,
    &kFastCommitLeftOn,    &kHeadInFastCommitArea,
};
}  // namespace

std::span<const FindingKind* const> kinds() noexcept { return kKinds; }

}  // namespace jbdlab::analyze::finding
