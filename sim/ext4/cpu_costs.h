#pragma once

#include "base/time.h"

namespace jbdlab::ext4 {

// How long the processor takes, apart from the device. Rough figures: medians of the gaps between
// tracepoints in recorded single-threaded runs (append 4K + fsync on a loop device in memory, Linux
// 6.18, 2 CPUs at about 3 GHz), see docs/model.md. They decide latencies, and counts only where
// threads race. A processor is never waited for: as if there were one for each thread.
struct CpuCosts {
  Duration syscall = std::chrono::microseconds(4);  // entry, path walk, return
  Duration handle = std::chrono::microseconds(2);   // start and stop of a handle
  Duration map = std::chrono::microseconds(11);     // write-back: find or allocate one extent
  Duration wake = std::chrono::microseconds(15);    // until a sleeping thread runs
  Duration flusher_wait =
      std::chrono::microseconds(30);  // until one who waited for the flusher runs
  Duration write_buffer = std::chrono::microseconds(2);  // a sync takes up one dirty buffer
  Duration log_block = std::chrono::nanoseconds(400);    // a commit prepares one log block
};

}  // namespace jbdlab::ext4
