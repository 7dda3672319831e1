// Simulates each script below runs/ and holds its counters against those that the kernel had when
// the script was recorded (off.json: without fast commits). Prints every counter that differs.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/fidelity.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"

namespace jbdlab::test {
namespace {

namespace fs = std::filesystem;

fs::path runs() { return source_dir() / "tests/golden/runs"; }

std::vector<std::string> run_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(runs())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RecordedRun : public testing::TestWithParam<std::string> {
 protected:
  std::string script() const { return (runs() / GetParam() / "ops.txt").string(); }
  nlohmann::json recording() const {
    return nlohmann::json::parse(read_file(runs() / GetParam() / "off.json"));
  }
  std::string simulate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv{program()};
    const auto arguments = run_arguments(recording(), script());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    argv.insert(argv.end(), more.begin(), more.end());
    return must_run(argv);
  }
};

TEST_P(RecordedRun, HasTheCountersOfTheKernel) {
  const std::string report = simulate();
  ASSERT_NE(report, "");
  const auto rows = compare(recording(), nlohmann::json::parse(report),
                            ends_in_sync(read_file(script())), Keys::all);
  EXPECT_GT(rows.size(), 20U);
  for (const auto& row : rows) {
    EXPECT_TRUE(row.holds) << fmt::format("{}.{}: kernel {}, simulated {}", row.phase, row.key,
                                          row.kernel, row.simulated);
  }
}

TEST_P(RecordedRun, IsTheSameBytesTwice) {
  const TempDir dir;
  const auto image = [&](int i) { return (dir.path() / fmt::format("image{}", i)).string(); };
  const auto trace = [&](int i) { return (dir.path() / fmt::format("trace{}", i)).string(); };
  const auto once = [&](int i) {
    return simulate({"--image-out", image(i), "--trace-out", trace(i), "--seed", "7"});
  };
  const std::string first = once(1);
  const std::string second = once(2);
  ASSERT_NE(first, "");
  EXPECT_EQ(first, second);
  EXPECT_TRUE(read_file(image(1)) == read_file(image(2))) << "the images differ";
  EXPECT_TRUE(read_file(trace(1)) == read_file(trace(2))) << "the traces differ";
}

INSTANTIATE_TEST_SUITE_P(Runs, RecordedRun, testing::ValuesIn(run_names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace jbdlab::test
