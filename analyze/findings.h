#pragma once

#include <span>

#include "jbd2/finding.h"

// Findings about a file system and about how it and its journal fit together. Those of the journal
// itself are in jbd2/finding.h; both are one list for whoever reads a report.
namespace jbdlab::analyze::finding {

using jbd2::FindingKind;
using enum jbd2::Severity;

// The file system.
inline constexpr FindingKind kImageTruncated{
    "image-truncated", error, "the image ends before the file system does",
    "get the rest of the image: what lies beyond its end cannot be read"};
inline constexpr FindingKind kFsSuperblockChecksum{
    "fs-superblock-checksum", error, "the checksum of the file system's superblock is wrong",
    "run e2fsck on a copy, with a backup superblock (-b) if need be"};
inline constexpr FindingKind kFsUnknownFeature{
    "fs-unknown-feature", warning,
    "the file system has a feature that this program does not know, so what it says may be wrong",
    "see inspect for its name; a stray bit can be cleared with debugfs on a copy"};
inline constexpr FindingKind kFsErrors{"fs-errors", warning,
                                       "the kernel found errors in this file system; run e2fsck",
                                       "run e2fsck -f"};
inline constexpr FindingKind kFsInterruptedReplay{
    "fs-interrupted-replay", warning,
    "a replay of fast commits was interrupted; the next mount does it again",
    "recover it again: a replay of fast commits may be repeated"};

// Where the journal is.
inline constexpr FindingKind kJournalInodeBackup{
    "journal-inode-backup", warning,
    "the journal's inode cannot be used; its copy in the superblock is read instead",
    "run e2fsck, which mends the inode from the same copy"};
inline constexpr FindingKind kJournalMapping{
    "journal-mapping", error, "the block map of the journal's inode is damaged",
    "run e2fsck on a copy: it makes the journal anew, without what the old one held"};
inline constexpr FindingKind kJournalHole{
    "journal-hole", error, "the journal has blocks that are not mapped to the disk",
    "run e2fsck on a copy; log shows what lies before the hole"};
inline constexpr FindingKind kJournalUnreadable{
    "journal-unreadable", error, "the journal's superblock cannot be read",
    "copy the device with ddrescue and work on the copy"};
inline constexpr FindingKind kJournalDeviceMissing{
    "journal-device-missing", note,
    "the journal is on a device of its own, which was not named (--journal)",
    "name the device with --journal"};

// What the file system says of the journal, and what the journal says.
inline constexpr FindingKind kRecoveryFlagClear{
    "recovery-flag-clear", warning,
    "the log is not empty, but the file system does not "
    "ask for recovery: the kernel throws the log "
    "away, e2fsck offers to replay it",
    "before it is mounted, recover a copy and compare: a mount throws the log away"};
inline constexpr FindingKind kRecoveryFlagOnly{
    "recovery-flag-only", note,
    "the file system asks for recovery, and the log is empty: there is nothing to replay",
    "nothing: the next mount clears the flag"};
inline constexpr FindingKind kFastCommitLeftOn{
    "fast-commit-left-on", warning,
    "the journal has fast commits and the file system's "
    "feature is off: e2fsck does not replay them",
    "mount and unmount it once, or switch the feature on again: tune2fs -O fast_commit"};
inline constexpr FindingKind kHeadInFastCommitArea{
    "head-in-fast-commit-area", warning,
    "the log's head lies where the fast-commit area will be after the next mount: the kernel then "
    "writes past the ring and aborts the journal",
    "switch fast commits off before the next mount: tune2fs -O ^fast_commit"};

// All of the above, in that order.
std::span<const FindingKind* const> kinds() noexcept;

}  // namespace jbdlab::analyze::finding
