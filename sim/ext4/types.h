#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

#include "base/ids.h"
#include "sim/device/block_layer.h"
#include "sim/engine/task.h"

namespace jbdlab::jbd2 {
class Handle;
}

namespace jbdlab::ext4 {

using sim::Task;

// Why a system call failed: the kernel's own names.
enum class Errno : std::uint8_t {
  enoent,   // no such file or directory
  eexist,   // file exists
  enotdir,  // not a directory
  eisdir,   // is a directory
  enospc,   // no space left on the file system
  emlink,   // too many links
  enametoolong,
  efbig,  // file too large
  einval,
  enotempty,
  ebadf,
  euclean,  // structure needs cleaning: the image is damaged
  erofs,    // the journal has aborted
  edquot,
  eopnotsupp,
};
std::string_view errno_name(
    Errno e) noexcept;  // "ENOSPC: no space left on device", as people know it

template <class T>
using KResult = std::expected<T, Errno>;

// A simulated thread inside the kernel: which CPU it runs on (allocation has per-CPU state), the
// handle it has open, if any (current->journal_info), and its plug, if any (current->plug). Lives
// as long as the run.
struct Thread {
  unsigned cpu = 0;
  std::uint32_t pid = 0;
  jbd2::Handle* handle = nullptr;
  sim::Plug* plug = nullptr;

  // Before it waits for somebody who may wait for what it has plugged (sched_submit_work).
  void submit_plug() {
    if (plug != nullptr) plug->finish();
  }
};

}  // namespace jbdlab::ext4
