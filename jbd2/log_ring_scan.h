#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "jbd2/block_source.h"
#include "jbd2/finding.h"
#include "jbd2/format/geometry.h"
#include "jbd2/format/log_format.h"
#include "jbd2/log_reader.h"

// The two walks over the ring that read_log() is made of.
namespace jbdlab::jbd2 {

// What every walk needs; borrowed for its duration.
struct ScanContext {
  BlockSource& source;
  const LogFormat& format;
  const Geometry& geometry;
  const LogReadOptions& options;
  FindingLog& findings;
};

struct RingScan {
  std::vector<LogTransaction> transactions;
  Tid end;                       // first tid that recovery does not take
  LogBlock end_block;            // behind the last transaction that it takes
  bool failed = false;           // the log ends in damage, not where the last commit ended
  LogBlock rest_first;           // what the walk did not look at: the older generations,
  std::uint32_t rest_count = 0;  // in ring order
};

// The live log: from the superblock's start, where its sequence is expected.
RingScan scan_live(const ScanContext& context, Tid sequence, LogBlock start);

// Every transaction of older generations in `count` blocks from `first` on. They are stale, and
// nothing about them is a finding.
std::vector<LogTransaction> scan_stale(const ScanContext& context, LogBlock first,
                                       std::uint32_t count);

}  // namespace jbdlab::jbd2
