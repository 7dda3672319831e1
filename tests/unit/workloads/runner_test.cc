#include "workloads/runner.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ext4/mount_options.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/trace_recount.h"

namespace jbdlab::workloads {
namespace {

// A small file system of mke2fs, loaded once.
const sim::BlockStore& small_file_system() {
  static const sim::BlockStore kStore = [] {
    const test::TempDir dir;
    const std::string image = (dir.path() / "image").string();
    test::must_run({"truncate", "-s", "32M", image});
    test::must_run({"mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-O",
                    "^orphan_file,^metadata_csum_seed", image});
    auto loaded = sim::BlockStore::load(image, 4096);
    EXPECT_TRUE(loaded.has_value());
    return std::move(*loaded);
  }();
  return kStore;
}

class Runner : public testing::Test {
 protected:
  RunOutcome run(std::string_view text) {
    const auto script = parse_op_script(text, "ops");
    EXPECT_TRUE(script.has_value());
    EXPECT_FALSE(find_unsupported(*script).has_value());
    options_.file_system.journal.epoch_seconds = 1'700'003'600;
    trace_ = test::TraceRecount();
    lines_.clear();
    options_.trace = [&](std::string_view line) {
      trace_.line(line);
      lines_.emplace_back(line);
    };
    ended_ = 0;
    auto outcome = run_script(*script, small_file_system(), options_,
                              [&](const sim::BlockStore&) { ++ended_; });
    EXPECT_TRUE(outcome.has_value()) << outcome.error().what;
    EXPECT_EQ(ended_, 1);
    return std::move(*outcome);
  }
  std::vector<std::string> verbs() const {
    std::vector<std::string> verbs;
    for (const auto& op : trace_.ops) verbs.push_back(op.verb);
    return verbs;
  }

  RunOptions options_;
  test::TraceRecount trace_;
  std::vector<std::string> lines_;
  int ended_ = 0;
};

TEST_F(Runner, GoesThroughThePhasesOfTheScript) {
  const RunOutcome outcome = run("create a\nmark setup\ncreate b\nmark run\ncreate c\n");
  EXPECT_EQ(trace_.phases, (std::vector<std::string>{"mount", "run", "setup", "run", "umount"}));
  std::vector<std::string> names;
  for (const PhaseReport& phase : outcome.report.phases) names.push_back(phase.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mount", "run", "setup", "umount"}));
  EXPECT_EQ(outcome.report.find_phase("run")->counters.ops[OpKind::create], 2U);
  EXPECT_EQ(outcome.report.find_phase("setup")->counters.ops[OpKind::create], 1U);
  EXPECT_FALSE(outcome.crashed);
  EXPECT_FALSE(outcome.report.failure.has_value());
}

TEST_F(Runner, LetsThreadsMeetAtBarriersAndMarks) {
  run("t0: sleepms 5\nt1: create a\nbarrier\nt1: create b\nt0: stat b\nmark x\nt0: mkdir d\n"
      "t1: sleepms 1\nt1: mkdir d/e\n");
  // The one that sleeps keeps the other from going on.
  EXPECT_EQ(verbs()[0], "create");
  EXPECT_EQ(verbs()[1], "sleepms");
  EXPECT_EQ(verbs().size(), 7U);
}

TEST_F(Runner, EndsAllThreadsWithTheFirstFailureAndStillUnmounts) {
  const RunOutcome outcome =
      run("t0: open none\nt1: sleepms 1\nt1: create a\nbarrier\nt0: create b\nt2: create c\n");
  ASSERT_TRUE(outcome.report.failure.has_value());
  EXPECT_EQ(outcome.report.failure->line, 1U);
  EXPECT_EQ(outcome.report.failure->operation, "open none");
  EXPECT_EQ(outcome.report.failure->what, "ENOENT: no such file or directory");
  EXPECT_EQ(verbs(), (std::vector<std::string>{"sleepms"}));
  EXPECT_EQ(trace_.phases.back(), "umount");
}

TEST_F(Runner, TakesAnyResultOfStatAndCloseOfWhatIsNotOpen) {
  EXPECT_FALSE(run("stat none\nclose none\n").report.failure.has_value());
}

TEST_F(Runner, MeasuresOnlyThePhaseRun) {
  const RunOutcome outcome =
      run("mark setup\ncreate a\nfsync a\nmark run\nappend a 4K\nfsync a\nsleepms 30\n");
  const Report& report = outcome.report;
  EXPECT_EQ(report.latency_ns[OpKind::create].count(), 0U);
  EXPECT_EQ(report.latency_ns[OpKind::fsync].count(), 1U);
  EXPECT_EQ(report.latency_ns[OpKind::sleepms].max(), 30'000'000U);
  EXPECT_EQ(report.find_phase("run")->counters.bytes_written, 4096U);
}

// ----- power cuts -----

TEST_F(Runner, CutsAfterAnOperationOfAnyThread) {
  options_.crash = AfterOp{3};
  const RunOutcome outcome =
      run("t0: create a\nbarrier\nt1: create b\nt0: create c\nt1: create d\nt0: create e\n");
  EXPECT_TRUE(outcome.crashed);
  EXPECT_EQ(verbs().size(), 3U);
  EXPECT_TRUE(lines_.back().find(" op create thread ") != std::string::npos) << lines_.back();
}

TEST_F(Runner, CutsAfterARequest) {
  for (const std::uint64_t count : {1U, 6U, 7U, 20U}) {
    options_.crash = AfterRequest{count};
    const RunOutcome outcome = run("create a\nappend a 64K\nfsync a\n");
    EXPECT_TRUE(outcome.crashed);
    EXPECT_EQ(outcome.requests, count);
  }
}

TEST_F(Runner, CutsAtATime) {
  options_.crash = AtTime{Time{Duration{250'000}}};
  const RunOutcome outcome = run("create a\nappend a 64K\nfsync a\n");
  EXPECT_TRUE(outcome.crashed);
  EXPECT_LE(outcome.report.elapsed, Duration{250'000});
  for (const auto& line : lines_) EXPECT_LE(std::stoull(line), 250'000U) << line;
}

TEST_F(Runner, IsOverBeforeACutThatComesTooLate) {
  options_.crash = AfterRequest{1'000'000};
  EXPECT_FALSE(run("create a\n").crashed);
  options_.crash = AtTime{Time{std::chrono::hours(1)}};
  EXPECT_FALSE(run("create a\n").crashed);
}

// ----- what it refuses -----

struct Row {
  const char* name;
  const char* script;
  const char* sentence;
};
class Unsupported : public testing::TestWithParam<Row> {};

TEST_P(Unsupported, IsFoundBeforeAnythingRuns) {
  const auto script = parse_op_script(GetParam().script, "s");
  ASSERT_TRUE(script.has_value());
  const auto error = find_unsupported(*script);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, Errc::usage);
  EXPECT_EQ(error->what, GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(Rows, Unsupported,
                         testing::Values(Row{"Operation", "create a\n\nunlink a\n",
                                             "s:3: 'unlink a' is not simulated yet"},
                                         Row{"Flag", "open a direct\n",
                                             "s:1: 'open a direct' is not simulated yet"},
                                         Row{"OfAThread", "t3: rename a b\n",
                                             "s:1: 't3: rename a b' is not simulated yet"}),
                         [](const auto& row) { return row.param.name; });

TEST(RunScript, RefusesWhatIsNoFileSystem) {
  const auto script = parse_op_script("create a\n", "s");
  const auto outcome = run_script(*script, sim::BlockStore(4096, 1 << 20), {});
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().what,
            "superblock: magic is 0x0000, expected 0xef53 (not an ext4 file system)");
  const auto tiny = run_script(*script, sim::BlockStore(1024, 1024), {});
  ASSERT_FALSE(tiny.has_value());
  EXPECT_EQ(tiny.error().code, Errc::truncated);
}

}  // namespace
}  // namespace jbdlab::workloads
