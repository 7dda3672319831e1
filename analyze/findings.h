#pragma once

#include <span>

#include "jbd2/finding.h"

// Findings about a file system and about how it and its journal fit together. Those of the journal
// itself are in jbd2/finding.h; both are one list for whoever reads a report.
namespace jbdlab::analyze::finding {

using jbd2::FindingKind;
using enum jbd2::Severity;

// The file system.
inline constexpr FindingKind kImageTruncated{"image-truncated", error,
                                             "the image ends before the file system does"};
inline constexpr FindingKind kFsSuperblockChecksum{
    "fs-superblock-checksum", error, "the checksum of the file system's superblock is wrong"};
inline constexpr FindingKind kFsUnknownFeature{
    "fs-unknown-feature", warning,
    "the file system has a feature that this program does not know, so what it says may be wrong"};
inline constexpr FindingKind kFsErrors{"fs-errors", warning,
                                       "the kernel found errors in this file system; run e2fsck"};
inline constexpr FindingKind kFsInterruptedReplay{
    "fs-interrupted-replay", warning,
    "a replay of fast commits was interrupted; the next mount does it again"};

// Where the journal is.
inline constexpr FindingKind kJournalInodeBackup{
    "journal-inode-backup", warning,
    "the journal's inode cannot be used; its copy in the superblock is read instead"};
inline constexpr FindingKind kJournalMapping{"journal-mapping", error,
                                             "the block map of the journal's inode is damaged"};
inline constexpr FindingKind kJournalHole{"journal-hole", error,
                                          "the journal has blocks that are not mapped to the disk"};
inline constexpr FindingKind kJournalUnreadable{"journal-unreadable", error,
                                                "the journal's superblock cannot be read"};
inline constexpr FindingKind kJournalDeviceMissing{
    "journal-device-missing", note,
    "the journal is on a device of its own, which was not named (--journal)"};

// What the file system says of the journal, and what the journal says.
inline constexpr FindingKind kRecoveryFlagClear{
    "recovery-flag-clear", warning,
    "the log is not empty, but the file system does not "
    "ask for recovery: the kernel throws the log "
    "away, e2fsck offers to replay it"};
inline constexpr FindingKind kRecoveryFlagOnly{
    "recovery-flag-only", note,
    "the file system asks for recovery, and the log is empty: there is nothing to replay"};
inline constexpr FindingKind kFastCommitLeftOn{"fast-commit-left-on", warning,
                                               "the journal has fast commits and the file system's "
                                               "feature is off: e2fsck does not replay them"};
inline constexpr FindingKind kHeadInFastCommitArea{
    "head-in-fast-commit-area", warning,
    "the log's head lies where the fast-commit area will be after the next mount: the kernel then "
    "writes past the ring and aborts the journal"};

// All of the above, in that order.
std::span<const FindingKind* const> kinds() noexcept;

}  // namespace jbdlab::analyze::finding
