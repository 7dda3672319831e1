#pragma once

#include <span>

#include "jbd2/finding.h"

// Findings about a file system and about how it and its journal fit together. Those of the journal
// itself are in jbd2/finding.h; both are one list for whoever reads a report.
namespace jbdlab::analyze::finding {

using jbd2::FindingKind;

// The file system.
extern const FindingKind kImageTruncated, kFsSuperblockChecksum, kFsUnknownFeature, kFsErrors,
    kFsInterruptedReplay;
// Where the journal is.
extern const FindingKind kJournalInodeBackup, kJournalMapping, kJournalHole, kJournalUnreadable,
    kJournalDeviceMissing;
// What the file system says of the journal, and what the journal says.
extern const FindingKind kRecoveryFlagClear, kRecoveryFlagOnly, kFastCommitLeftOn,
    kHeadInFastCommitArea;

std::span<const FindingKind* const> kinds() noexcept;

}  // namespace jbdlab::analyze::finding
