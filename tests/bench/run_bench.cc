#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/check.h"
#include "base/pool.h"
#include "cli/mkfs.h"
#include "workloads/op_script.h"
#include "workloads/runner.h"

// Simulated files a second: create, write, fsync and close of each, on a file system that mke2fs
// made, every byte of which is real. One iteration is a whole run, from mount to unmount; mke2fs
// and reading the script are not in it.
namespace jbdlab::workloads {
namespace {

struct Shape {
  std::uint32_t directories;
  std::uint32_t files;  // in each
  std::uint32_t bytes;  // of each
};

OpScript script_of(const Shape& shape) {
  std::string text = "mark setup\n";
  for (std::uint32_t d = 0; d < shape.directories; ++d) text += fmt::format("mkdir d{}\n", d);
  text += "syncfs\nmark run\n";
  for (std::uint32_t d = 0; d < shape.directories; ++d) {
    for (std::uint32_t i = 0; i < shape.files; ++i) {
      const std::string path = fmt::format("d{}/file{:06}", d, i);
      text += fmt::format("create {0}\nappend {0} {1}\nfsync {0}\nclose {0}\n", path, shape.bytes);
    }
  }
  auto script = parse_op_script(text, "bench.ops");
  CHECK(script.has_value());
  return *std::move(script);
}

sim::BlockStore new_file_system() {
  auto contents = cli::make_file_system("", std::uint64_t{2} << 30);
  CHECK(contents.has_value());
  return *std::move(contents);
}

RunOptions run_options() {
  RunOptions options;
  options.file_system.journal.epoch_seconds = cli::kMkfsTime + 3600;
  return options;
}

RunOutcome run(const OpScript& script, const sim::BlockStore& contents) {
  auto outcome = run_script(script, contents, run_options());
  CHECK(outcome.has_value());
  CHECK(!outcome->report.failure);
  return *std::move(outcome);
}

// The largest resident set of a process that does nothing but `work`, in KiB: the run in a child of
// its own, asked of the kernel when it has ended.
template <class Work>
std::int64_t peak_memory_kib(const Work& work) {
  pool::trim();  // what others have freed is not the child's
  malloc_trim(0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  CHECK(wait4(child, &status, 0, &usage) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return usage.ru_maxrss;
}

// Counters beside files a second: the engine's events a second, and what a simulated file costs in
// memory: the peak of a run over that of a run without a file (file system and program).
void BM_create_write_fsync(benchmark::State& state) {
  const Shape shape{.directories = static_cast<std::uint32_t>(state.range(0)),
                    .files = static_cast<std::uint32_t>(state.range(1)),
                    .bytes = static_cast<std::uint32_t>(state.range(2))};
  const sim::BlockStore contents = new_file_system();
  const OpScript script = script_of(shape);
  const OpScript nothing =
      script_of({.directories = shape.directories, .files = 0, .bytes = shape.bytes});
  const std::uint64_t files = std::uint64_t{shape.directories} * shape.files;
  const std::int64_t idle_kib = peak_memory_kib([&] { run(nothing, contents); });
  const std::int64_t peak_kib = peak_memory_kib([&] { run(script, contents); });

  std::uint64_t events = 0;
  for (auto _ : state) {
    const RunOutcome outcome = run(script, contents);
    events += outcome.events;
  }
  const auto count = [](auto n) { return static_cast<double>(n); };
  state.counters["files"] =
      benchmark::Counter(count(files), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["events"] = benchmark::Counter(count(events), benchmark::Counter::kIsRate);
  state.counters["peak_MiB"] = count(peak_kib) / 1024;
  state.counters["bytes_per_file"] = count((peak_kib - idle_kib) * 1024) / count(files);
}
// Many directories of two levels of index; one small directory, as in the recorded fsmark_1t.
BENCHMARK(BM_create_write_fsync)
    ->ArgNames({"dirs", "files", "size"})
    ->Args({64, 1000, 4096})
    ->Args({1, 500, 16384})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace jbdlab::workloads
