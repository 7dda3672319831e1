// The images that simulated runs leave: checked by e2fsck, mounted by the kernel, and held against
// what the script says each file must contain.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/kernel/kernel_test.h"
#include "tests/support/fidelity.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"
#include "tests/support/script_model.h"

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

void check_with_e2fsck(const fs::path& image) {
  const std::vector<std::string> argv{"e2fsck", "-fn", image.string()};
  const Ran ran = run(argv);
  EXPECT_EQ(ran.exit_status, 0) << describe(argv, ran);
}

class SimulatedImage : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    NEED_MOUNTS();
    script_path_ = (runs() / GetParam() / "ops.txt").string();
    script_ = read_file(script_path_);
  }

  const std::string& script() const { return script_; }

  // Simulates the script and gives the image that `more` options leave.
  fs::path simulate(const std::vector<std::string>& more) {
    const auto recording = nlohmann::json::parse(read_file(runs() / GetParam() / "off.json"));
    const fs::path image = dir_.path() / "image";
    std::vector<std::string> argv{program()};
    const auto arguments = run_arguments(recording, script_path_);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    argv.insert(argv.end(), {"--image-out", image.string()});
    argv.insert(argv.end(), more.begin(), more.end());
    must_run(argv);
    return image;
  }

 private:
  TempDir dir_;
  std::string script_path_;
  std::string script_;
};

TEST_P(SimulatedImage, HoldsWhatTheScriptWrote) {
  const fs::path image = simulate({});
  ASSERT_TRUE(fs::exists(image));
  check_with_e2fsck(image);
  const auto mount = Mount::mount(image, LoopDevice::Access::read_only, "ro,noload");
  ASSERT_NE(mount, nullptr);
  std::map<std::string, std::string> files;
  std::set<std::string> directories;
  for (const auto& entry : fs::recursive_directory_iterator(mount->folder())) {
    const std::string path = fs::relative(entry.path(), mount->folder()).string();
    if (path == "lost+found") {
      continue;
    }
    if (entry.is_directory()) {
      directories.insert(path);
    } else {
      files[path] = read_file(entry.path());
    }
  }
  const ScriptModel model = ScriptModel::after_all(script());
  EXPECT_EQ(directories, model.directories());
  EXPECT_EQ(files.size(), model.files().size());
  for (const auto& [path, content] : model.files()) {
    ASSERT_TRUE(files.contains(path)) << path << " is not there";
    EXPECT_EQ(files[path].size(), content.size()) << path;
    EXPECT_TRUE(files[path] == content) << path << " has other bytes";
  }
}

// Cuts the power at several operations, lets the kernel recover, and looks for what was synced.
TEST_P(SimulatedImage, KeepsWhatWasSyncedThroughAPowerCut) {
  const std::size_t count = ScriptModel::count_operations(script());
  ASSERT_GT(count, 8U);
  for (const std::size_t last : {count / 7, count / 3, count / 2 + 1, count - 2, count}) {
    for (const char* keep : {"completed", "durable", "seed:3"}) {
      SCOPED_TRACE(fmt::format("--crash-at op:{} --keep {}", last, keep));
      const fs::path image = simulate({"--crash-at", fmt::format("op:{}", last), "--keep", keep});
      ASSERT_TRUE(fs::exists(image));
      {
        const auto mount = Mount::mount(image, LoopDevice::Access::read_write, "rw");
        ASSERT_NE(mount, nullptr);
        const ScriptModel model = ScriptModel::after(script(), last);
        EXPECT_FALSE(model.durable_files().empty() && model.durable_directories().empty());
        for (const auto& path : model.durable_directories()) {
          EXPECT_TRUE(fs::is_directory(mount->folder() / path)) << path << " is lost";
        }
        for (const auto& [path, content] : model.durable_files()) {
          ASSERT_TRUE(fs::exists(mount->folder() / path)) << path << " is lost";
          const std::string found = read_file(mount->folder() / path);
          EXPECT_GE(found.size(), content.size()) << path;
          EXPECT_TRUE(found.starts_with(content)) << path << " has lost synced bytes";
        }
      }
      check_with_e2fsck(image);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, SimulatedImage, testing::ValuesIn(run_names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace jbdlab::test
