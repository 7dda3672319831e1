#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace jbdlab::test {

// What a program did.
struct Ran {
  int exit_status = -1;  // -1 if it did not exit by itself
  int signal = 0;        // that ended it, or 0
  bool timed_out = false;
  std::string out;
  std::string err;

  bool ok() const { return exit_status == 0; }
};

struct RunOptions {
  std::chrono::seconds timeout{300};                             // then the program is killed
  std::filesystem::path folder;                                  // to run in; empty: ours
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};

// Runs argv[0] (looked up in PATH and in the sbin folders, where mke2fs lives) with an empty
// standard input and waits for it. A program that cannot be started exits with 127.
Ran run(const std::vector<std::string>& argv, const RunOptions& options = {});

// One line and what it printed, for a failure message.
std::string describe(const std::vector<std::string>& argv, const Ran& ran);

// Output of `argv`, which must exit with 0; the calling test fails and gets "" otherwise.
std::string must_run(const std::vector<std::string>& argv, const RunOptions& options = {});

}  // namespace jbdlab::test
