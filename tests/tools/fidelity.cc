// fidelity [--all] JBDLAB RUN_FOLDER...: simulates each recorded run (ops.txt, off.json) and prints
// its counters beside those that the kernel had. Exit 0 if all hold, 1 if not, 2 if asked wrongly.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/fidelity.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace jbdlab::test {
namespace {

// Prints the table of one run.
bool show(const std::string& program, const std::filesystem::path& folder, Keys keys) {
  const auto script = (folder / "ops.txt").string();
  const auto recording = nlohmann::json::parse(read_file(folder / "off.json"));
  std::vector<std::string> argv{program};
  const auto arguments = run_arguments(recording, script);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const Ran ran = run(argv);
  if (!ran.ok()) {
    fmt::print(stderr, "{}", describe(argv, ran));
    return false;
  }
  const auto rows =
      compare(recording, nlohmann::json::parse(ran.out), ends_in_sync(read_file(script)), keys);
  fmt::print("{}\n  {:<7}{:<28}{:>20}{:>20}\n", folder.filename().string(), "phase", "counter",
             fmt::format("Linux {}", recording["config"]["kernel"].get<std::string>()),
             "simulated");
  std::size_t held = 0;
  for (const auto& row : rows) {
    held += row.holds ? 1 : 0;
    fmt::print("  {:<7}{:<28}{:>20}{:>20}{}\n", row.phase, row.key, row.kernel, row.simulated,
               row.holds ? "" : "  differs");
  }
  fmt::print("  {} of {} counters hold\n", held, rows.size());
  return held == rows.size();
}

}  // namespace
}  // namespace jbdlab::test

int main(int argc, char** argv) {
  using jbdlab::test::Keys;
  std::vector<std::string> words(argv + 1, argv + argc);
  Keys keys = Keys::core;
  if (!words.empty() && words[0] == "--all") {
    keys = Keys::all;
    words.erase(words.begin());
  }
  if (words.size() < 2) {
    fmt::print(stderr, "usage: fidelity [--all] JBDLAB RUN_FOLDER...\n");
    return 2;
  }
  bool good = true;
  for (std::size_t i = 1; i < words.size(); ++i) {
    good = jbdlab::test::show(words[0], words[i], keys) && good;
  }
  return good ? 0 : 1;
}
