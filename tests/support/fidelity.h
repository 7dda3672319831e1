#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::test {

// Which counters are compared.
enum class Keys {
  core,  // phase run: commits, transactions in order, flushes, log, fast-commit and data sectors
  all,   // also handles, checkpoints, in-place sectors, and the phases setup and umount
};

// One counter of a recording beside that of a report.
struct Compared {
  std::string phase;
  std::string key;
  std::string kernel;     // as recorded: a number, [min, median, max], or a list
  std::string simulated;  // "missing" where a report has not got it
  bool holds = false;
};

// Holds `report` (`jbdlab run --json`) against `recording` (tests/kernel/record/record.sh).
//
// A number was the same in all repeats of the recording and must be equal; [min, median, max] was
// not, and may be missed by 10 % beyond the range, or 2. A core counter must be in the report.
// What is 0 on both sides is left out. Outside the core, where the kernel itself does not repeat
// exactly, 1 % (phase run) or 5 % (other phases) may be missed, but at least 2 or 3.
//
// `ends_in_sync`: the last operation of the script is sync or syncfs. Two commits of one syncfs, or
// its flush without data, are a race in the kernel, so that one flush more or less is right.
std::vector<Compared> compare(const nlohmann::json& recording, const nlohmann::json& report,
                              bool ends_in_sync, Keys keys);

bool ends_in_sync(std::string_view script);

// The arguments of `jbdlab` that repeat a recording of `script`: its image size, mke2fs and mount
// options, and device (`ram` if the recording's image lay on a tmpfs, else `loop-file`).
std::vector<std::string> run_arguments(const nlohmann::json& recording, const std::string& script);

}  // namespace jbdlab::test
