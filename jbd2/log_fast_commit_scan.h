#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "jbd2/log_ring_scan.h"

namespace jbdlab::jbd2 {

struct FastCommitScan {
  LogBlock first;  // the area: [first, end)
  LogBlock end;
  // The tid that fast commits must have for recovery to take them: the first that the ring does not
  // hold. Nothing: recovery does not look at the area at all.
  std::optional<Tid> expected;
  bool ring_failed = false;  // the ring ends in damage: fast commits describe what comes after it
};

// The fast commits of the area; with options.all the stale ones, too. Follows
// ext4_fc_replay_scan() in fs/ext4/fast_commit.c with two differences (journal-format.md, H1 and
// H3): a walk ends with the area, and whatever is wrong before the first valid TAIL means that
// there are no fast commits, not that the journal cannot be recovered.
std::vector<LogFastCommit> scan_fast_commits(const ScanContext& context,
                                             const FastCommitScan& scan);

}  // namespace jbdlab::jbd2
