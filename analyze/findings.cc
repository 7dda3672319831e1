#include "analyze/findings.h"

#include <array>

namespace jbdlab::analyze::finding {

std::span<const FindingKind* const> kinds() noexcept {
  static constexpr std::array kKinds{
      &kImageTruncated,      &kFsSuperblockChecksum, &kFsUnknownFeature,  &kFsErrors,
      &kFsInterruptedReplay, &kJournalInodeBackup,   &kJournalMapping,    &kJournalHole,
      &kJournalUnreadable,   &kJournalDeviceMissing, &kRecoveryFlagClear, &kRecoveryFlagOnly,
      &kFastCommitLeftOn,    &kHeadInFastCommitArea};
  return kKinds;
}

}  // namespace jbdlab::analyze::finding
