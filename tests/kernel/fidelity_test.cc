// Scripts that nobody has recorded before: made here, run by this machine's kernel, simulated, and
// compared. JBDLAB_SEED=N tries other sizes and counts than the committed ones.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>

#include "tests/kernel/kernel_test.h"
#include "tests/support/fidelity.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"

namespace jbdlab::test {
namespace {

// splitmix64: the same scripts on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t between(std::uint64_t first, std::uint64_t last) {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return first + (z ^ (z >> 31)) % (last - first + 1);
  }
  std::uint64_t one_of(std::initializer_list<std::uint64_t> values) {
    return values.begin()[between(0, values.size() - 1)];
  }

 private:
  std::uint64_t state_;
};

// One file that exists when the counters start.
std::string set_up_file(Draw& draw) {
  return fmt::format("mark setup\ncreate f\nappend f {}\nfsync f\n",
                     draw.one_of({1000, 4096, 8192, 20000}));
}

std::string appends(Draw& draw, std::string_view sync) {
  std::string script = set_up_file(draw) + "syncfs\nmark run\n";
  const auto size = draw.one_of({60, 512, 3000, 4096, 12288, 16000, 65536, 200000});
  for (auto count = draw.between(20, 80); count > 0; --count) {
    script += fmt::format("append f {}\n{} f\n", size, sync);
  }
  return script;
}

std::string fsync_appends(Draw& draw) { return appends(draw, "fsync"); }
std::string fdatasync_appends(Draw& draw) { return appends(draw, "fdatasync"); }

std::string synced_files(Draw& draw) {
  std::string script = "mark setup\nmkdir d\nsyncfs\nmark run\n";
  const auto size = draw.one_of({300, 4096, 10000, 16384, 40000});
  const bool directory_too = draw.between(0, 1) == 1;
  for (std::uint64_t i = 0, count = draw.between(20, 80); i < count; ++i) {
    script += fmt::format("create d/f{0}\nappend d/f{0} {1}\nfsync d/f{0}\n{2}close d/f{0}\n", i,
                          size, directory_too ? "fsync d\n" : "");
  }
  return script;
}

std::string idle_fsyncs(Draw& draw) {
  std::string script = set_up_file(draw) + "syncfs\nmark run\n";
  for (auto count = draw.between(5, 60); count > 0; --count) {
    script += draw.between(0, 3) == 0 ? "fdatasync f\n" : "fsync f\n";
  }
  return script;
}

std::string synchronous_appends(Draw& draw, std::string_view flag) {
  std::string script = set_up_file(draw) + "close f\nsyncfs\nmark run\n";
  script += fmt::format("open f {}\n", flag);
  const auto size = draw.one_of({100, 4096, 8192, 30000});
  for (auto count = draw.between(20, 80); count > 0; --count) {
    script += fmt::format("append f {}\n", size);
  }
  return script;
}

std::string osync_appends(Draw& draw) { return synchronous_appends(draw, "sync"); }
std::string odsync_appends(Draw& draw) { return synchronous_appends(draw, "dsync"); }

struct Kind {
  std::string_view name;
  std::string (*make)(Draw&);
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
constexpr std::array kKinds = std::to_array<Kind>({
    {"fsync_after_each_append", fsync_appends},
    {"fdatasync_after_each_append", fdatasync_appends},
    {"fsync_of_new_files", synced_files},
    {"fsync_of_an_unchanged_file", idle_fsyncs},
    {"appends_with_o_sync", osync_appends},
    {"appends_with_o_dsync", odsync_appends},
});

std::uint64_t first_seed() {
  const char* value = std::getenv("JBDLAB_SEED");
  return value != nullptr ? std::strtoull(value, nullptr, 0) : 1;
}

std::uint64_t seed_count() {
  const char* value = std::getenv("JBDLAB_LONG");
  return value != nullptr && std::string_view{value} == "1" ? 12 : 2;
}

class FreshRun : public testing::TestWithParam<Kind> {};

TEST_P(FreshRun, HasTheCountersOfThisKernel) {
  NEED_TRACING();
  for (std::uint64_t seed = first_seed(), end = seed + seed_count(); seed < end; ++seed) {
    SCOPED_TRACE(fmt::format("again with: JBDLAB_SEED={} kernel_tests --gtest_filter=*{}", seed,
                             GetParam().name));
    Draw draw{seed};
    const TempDir dir;
    const std::string script = (dir.path() / "ops.txt").string();
    write_file(script, GetParam().make(draw));
    record(script, 3, 256, "-b 4096", "commit=60", dir.path() / "off.json");
    if (HasFatalFailure() || HasNonfatalFailure()) {
      return;
    }
    const auto recording = nlohmann::json::parse(read_file(dir.path() / "off.json"));
    std::vector<std::string> argv{program()};
    const auto arguments = run_arguments(recording, script);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const std::string report = must_run(argv);
    ASSERT_NE(report, "");
    const auto rows = compare(recording, nlohmann::json::parse(report),
                              ends_in_sync(read_file(script)), Keys::core);
    EXPECT_GE(rows.size(), 2U);
    for (const auto& row : rows) {
      EXPECT_TRUE(row.holds) << fmt::format("{}.{}: kernel {}, simulated {}", row.phase, row.key,
                                            row.kernel, row.simulated);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, FreshRun, testing::ValuesIn(kKinds),
                         [](const auto& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace jbdlab::test
