#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "base/time.h"
#include "sim/device/device.h"
#include "sim/device/store.h"
#include "sim/ext4/file_system.h"
#include "sim/trace.h"
#include "workloads/op_script.h"
#include "workloads/report.h"

// Runs an operation script on a simulated ext4 on an emulated device, as the recording driver runs
// it on a real one: mount, the threads of the script, close, unmount.
namespace jbdlab::workloads {

// When the power goes.
struct AfterOp {
  std::uint64_t count;  // the count-th operation has returned (from 1; no barrier and mark lines)
};
struct AfterRequest {
  std::uint64_t count;  // the count-th request of the device has completed (from 1)
};
struct AtTime {
  Time at;
};
using CrashPoint = std::variant<AfterOp, AfterRequest, AtTime>;

struct RunOptions {
  std::string device = "ram";
  ext4::FileSystem::Config file_system;  // cpus and seed are those below
  unsigned cpus = 2;
  std::uint64_t seed = 0;
  std::optional<CrashPoint> crash;
  sim::Keep keep = sim::Keep::completed;  // what of the device survives the crash
  std::uint64_t keep_seed = 0;
  sim::Trace::Sink trace;  // each event as a line, if set
};

struct RunOutcome {
  Report report;         // provenance and config as far as the runner knows them: device, threads
  bool crashed = false;  // the crash point was reached
  std::uint64_t events = 0;    // that the engine fired
  std::uint64_t requests = 0;  // that the device completed
};

// The first operation of `script` that the simulator cannot do, as an Error (usage) that says
// "file:line: ...". Such a script must not be run.
std::optional<Error> find_unsupported(const OpScript& script);

// Operations that count for a CrashPoint: all but barrier and mark.
std::uint64_t count_operations(const OpScript& script);

// Runs `script` on the file system in `contents`, whose chunks are its blocks. `on_end` gets the
// contents of the device at the end: after unmount, or what the crash left. An operation that fails
// ends the script: report.failure says which. Errors: usage (no such device), unsupported or
// invalid (the file system cannot be mounted here; the sentence says why).
Result<RunOutcome> run_script(const OpScript& script, sim::BlockStore contents,
                              const RunOptions& options,
                              const std::function<void(const sim::BlockStore&)>& on_end = {});

}  // namespace jbdlab::workloads
