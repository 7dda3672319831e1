// The power goes at any request of a simulated run: what is on the device then must be repaired by
// replay alone, for e2fsck and for the kernel, and hold all that was synced before.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/kernel/kernel_test.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"
#include "tests/support/script_model.h"

namespace jbdlab::test {
namespace {

namespace fs = std::filesystem;

struct Row {
  const char* name;
  const char* head;  // once
  const char* body;  // this often, each %d its number
  int repeat;
  std::vector<std::string> options;
};

std::string script_of(const Row& row) {
  std::string text = row.head;
  for (int i = 0; i < row.repeat; ++i) {
    std::string part = row.body;
    for (std::size_t at; (at = part.find("%d")) != std::string::npos;) {
      part.replace(at, 2, std::to_string(i));
    }
    text += part;
  }
  return text;
}

// The operations that had returned when the trace ended, in the order in which they did.
std::string completed(const std::string& script, const std::string& trace) {
  std::map<std::string, std::deque<std::string>> lines;
  for (const auto& line : lines_of(script)) {
    const bool named = line.starts_with('t') && line.find(": ") != std::string::npos;
    const std::string thread = named ? line.substr(1, line.find(':') - 1) : "0";
    const std::string operation = named ? line.substr(line.find(' ') + 1) : line;
    if (operation != "barrier") lines[thread].push_back(operation);
  }
  std::string done;
  for (const auto& line : lines_of(trace)) {
    const auto words = words_of(line);
    if (words.size() < 5 || words[1] != "op") continue;
    auto& next = lines[words[4]];
    if (next.empty()) {
      ADD_FAILURE() << "more operations than in the script: " << line;
      return done;
    }
    EXPECT_TRUE(next.front().starts_with(words[2])) << line << " / " << next.front();
    done += next.front() + "\n";
    next.pop_front();
  }
  return done;
}

std::size_t count_requests(const std::string& trace) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = trace.find(" block_rq_complete ", at)) != std::string::npos;
       ++at) {
    ++count;
  }
  return count;
}

class PowerCut : public testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    NEED_MOUNTS();
    script_ = script_of(GetParam());
    write_file(file("ops"), script_);
  }
  fs::path file(const char* name) const { return dir_.path() / name; }
  void simulate(const std::vector<std::string>& more) const {
    std::vector<std::string> argv{program(),
                                  "run",
                                  file("ops").string(),
                                  "--size",
                                  "32M",
                                  "--image-out",
                                  file("image").string(),
                                  "--trace-out",
                                  file("trace").string()};
    argv.insert(argv.end(), GetParam().options.begin(), GetParam().options.end());
    argv.insert(argv.end(), more.begin(), more.end());
    must_run(argv);
  }
  // Replay is all that e2fsck has to do, but for the free counts of the superblock, which nobody
  // writes before unmount.
  void e2fsck_repairs_by_replay() const {
    fs::copy_file(file("image"), file("copy"), fs::copy_options::overwrite_existing);
    const Ran ran = run({"e2fsck", "-fy", file("copy").string()});
    EXPECT_LE(ran.exit_status, 1) << ran.out << ran.err;
    for (const auto& line : lines_of(ran.out)) {
      const bool fine = line.empty() || line.starts_with("Pass ") || line.starts_with("Fix? yes") ||
                        line.find("recovering journal") != std::string::npos ||
                        line.find("FILE SYSTEM WAS MODIFIED") != std::string::npos ||
                        line.find(" files (") != std::string::npos ||
                        line.starts_with("Free blocks count wrong (") ||
                        line.starts_with("Free inodes count wrong (");
      EXPECT_TRUE(fine) << line;
    }
    const Ran again = run({"e2fsck", "-fn", file("copy").string()});
    EXPECT_EQ(again.exit_status, 0) << again.out << again.err;
  }
  void kernel_finds_what_was_synced(const ScriptModel& model) const {
    {
      const auto mount = Mount::mount(file("image"), LoopDevice::Access::read_write, "rw");
      ASSERT_NE(mount, nullptr);
      for (const auto& path : model.durable_directories()) {
        EXPECT_TRUE(fs::is_directory(mount->folder() / path)) << path << " is lost";
      }
      for (const auto& [path, content] : model.durable_files()) {
        if (!fs::exists(mount->folder() / path)) {
          ADD_FAILURE() << path << " is lost";
          continue;
        }
        EXPECT_TRUE(read_file(mount->folder() / path).starts_with(content))
            << path << " has lost synced bytes";
      }
    }
    const Ran ran = run({"e2fsck", "-fn", file("image").string()});
    EXPECT_EQ(ran.exit_status, 0) << ran.out << ran.err;
  }

  std::string script_;
  TempDir dir_;
};

TEST_P(PowerCut, LosesNothingThatWasSynced) {
  simulate({});
  const std::size_t requests = count_requests(read_file(file("trace")));
  ASSERT_GT(requests, 100U);
  const bool all = std::getenv("JBDLAB_LONG") != nullptr;
  const std::size_t cuts = all ? 400 : 40;
  std::size_t durable = 0;
  for (std::size_t i = 1; i <= cuts; ++i) {
    const std::size_t step = 1 + (requests - 1) * i / (cuts + 1);
    const std::string keep = i % 3 == 0 ? "durable" : fmt::format("seed:{}", i);
    SCOPED_TRACE(fmt::format("--crash-at step:{} --keep {}", step, keep));
    simulate({"--crash-at", fmt::format("step:{}", step), "--keep", keep});
    const std::string trace = read_file(file("trace"));
    EXPECT_EQ(count_requests(trace), step);
    const ScriptModel model = ScriptModel::after_all(completed(script_, trace));
    durable += model.durable_files().size();
    e2fsck_repairs_by_replay();
    ASSERT_NO_FATAL_FAILURE(kernel_finds_what_was_synced(model));
    if (HasFailure()) return;
  }
  EXPECT_GT(durable, cuts);
}

INSTANTIATE_TEST_SUITE_P(
    Scripts, PowerCut,
    testing::Values(
        Row{"FilesAndFolders",
            "mkdir d\nsyncfs\n",
            "mkdir d/s%d\ncreate d/s%d/a\nappend d/s%d/a 5K 3\nfsync d/s%d/a\ncreate d/f%d\n"
            "append d/f%d 100\nfdatasync d/f%d\nappend d/f%d 30K\nclose d/f%d\n",
            40,
            {}},
        Row{"FlusherAndSyncs",
            "mkdir d\nopen d/sync creat sync\nopen d/dsync creat dsync\ncreate log\n",
            "create d/f%d\nappend d/f%d 64K 2\nappend d/sync 3K\nsleepms 2500\nappend d/dsync 9K\n"
            "append log 700\nfdatasync log\nclose d/f%d\nfsync d\n",
            20,
            {"--mkfs", "-b 4096"}},
        Row{"LogThatWraps",
            "mkdir d\nsync\n",
            "create d/name_of_some_length_%d\nappend d/name_of_some_length_%d 2K\n"
            "fsync d/name_of_some_length_%d\nclose d/name_of_some_length_%d\nmkdir d/s%d\n",
            150,
            {"--mkfs", "-b 1024 -J size=1"}},
        Row{"TwoThreads",
            "t0: mkdir d0\nt1: mkdir d1\nbarrier\n",
            "t0: create d0/f%d\nt0: append d0/f%d 8K\nt0: fsync d0/f%d\nt0: create d1/g%d\n"
            "t1: create d1/f%d\nt1: append d1/f%d 20K\nt1: fdatasync d1/f%d\nt1: mkdir d0/h%d\n",
            30,
            {}}),
    [](const auto& row) { return row.param.name; });

// ----- cuts in words of the script and of the clock -----

struct Cut {
  const char* name;
  const char* at;
  const char* keep;
  const char* phase;  // in which the trace must end
};
class CutAt : public testing::TestWithParam<Cut> {
 protected:
  void SetUp() override { NEED_MOUNTS(); }
};

// Whenever it is, even inside the mount, the kernel mounts what is left.
TEST_P(CutAt, LeavesAFileSystemThatMounts) {
  const TempDir dir;
  const std::string ops = (dir.path() / "ops").string();
  const std::string image = (dir.path() / "image").string();
  const std::string trace = (dir.path() / "trace").string();
  write_file(ops,
             "mark setup\nmkdir d\nsync\nmark run\ncreate d/a\nappend d/a 64K\nfsync d/a\n"
             "create d/b\nappend d/b 64K\nsleepms 60000\n");
  must_run({program(), "run", ops, "--size", "32M", "--image-out", image, "--trace-out", trace,
            "--crash-at", GetParam().at, "--keep", GetParam().keep});
  std::string phase;
  for (const auto& line : lines_of(read_file(trace))) {
    if (words_of(line)[1] == "phase") phase = words_of(line)[2];
  }
  EXPECT_EQ(phase, GetParam().phase);
  {
    const auto mount = Mount::mount(image, LoopDevice::Access::read_write, "rw");
    ASSERT_NE(mount, nullptr);
  }
  const Ran ran = run({"e2fsck", "-fn", image});
  EXPECT_EQ(ran.exit_status, 0) << ran.out << ran.err;
}

INSTANTIATE_TEST_SUITE_P(Cuts, CutAt,
                         testing::Values(Cut{"BeforeTheMount", "0s", "durable", "mount"},
                                         Cut{"FirstRead", "step:1", "completed", "mount"},
                                         Cut{"SuperblockOfTheMount", "step:6", "seed:1", "mount"},
                                         Cut{"FirstOperation", "op:1", "durable", "setup"},
                                         Cut{"Sync", "op:2", "durable", "setup"},
                                         Cut{"LastOperation", "op:8", "completed", "run"},
                                         Cut{"InTheSleep", "20s", "completed", "run"},
                                         Cut{"EarlyInTheSleep", "1s", "seed:2", "run"}),
                         [](const auto& row) { return row.param.name; });

// ----- one run after the other -----

class Chain : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { NEED_MOUNTS(); }
};

// Simulated and real kernel take turns on one image.
TEST_P(Chain, OfSimulatedAndRealMountsKeepsEverything) {
  const TempDir dir;
  const auto file = [&](const std::string& name) { return (dir.path() / name).string(); };
  std::string all;
  std::string image = file("0");
  must_run({"truncate", "-s", "64M", image});
  std::vector<std::string> mkfs{"mke2fs", "-q", "-F", "-t", "ext4"};
  for (const auto& word : words_of(GetParam())) mkfs.push_back(word);
  mkfs.push_back(image);
  must_run(mkfs);
  for (int i = 1; i <= 3; ++i) {
    const std::string script = fmt::format(
        "mkdir d{0}\ncreate d{0}/a\nappend d{0}/a 30K\nfsync d{0}/a\nopen log creat\n"
        "append log 1000\nfdatasync log\ncreate e{0}\n",
        i);
    all += script;
    write_file(file("ops"), script);
    const std::string next = file(std::to_string(i));
    must_run({program(), "run", file("ops"), "--image", image, "--image-out", next});
    image = next;
    const Ran ran = run({"e2fsck", "-fn", image});
    EXPECT_EQ(ran.exit_status, 0) << ran.out << ran.err;
    const auto mount = Mount::mount(image, LoopDevice::Access::read_write, "rw");
    ASSERT_NE(mount, nullptr);
    const ScriptModel model = ScriptModel::after_all(all);
    for (const auto& [path, content] : model.files()) {
      EXPECT_TRUE(read_file(mount->folder() / path) == content) << path;
    }
    // The kernel's own changes go through the same journal.
    fs::create_directory(mount->folder() / fmt::format("kernel{}", i));
    write_file(mount->folder() / fmt::format("kernel{}/f", i), std::string(5000, 'k'));
  }
  const Ran ran = run({"e2fsck", "-fn", image});
  EXPECT_EQ(ran.exit_status, 0) << ran.out << ran.err;
}

INSTANTIATE_TEST_SUITE_P(FileSystems, Chain,
                         testing::Values("-O ^orphan_file,^metadata_csum_seed",
                                         "-b 1024 -O ^orphan_file,^metadata_csum_seed",
                                         "-O ^orphan_file,^metadata_csum,^64bit -I 128",
                                         "-b 2048 -O ^orphan_file,metadata_csum_seed"));

}  // namespace
}  // namespace jbdlab::test
