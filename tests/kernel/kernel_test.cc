#include "tests/kernel/kernel_test.h"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"

namespace jbdlab::test {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string try_a_mount() {
  if (::geteuid() != 0) {
    return "mounting needs root";
  }
  const TempDir dir;
  const std::string image = (dir.path() / "image").string();
  const std::string folder = (dir.path() / "m").string();
  fs::create_directory(folder);
  const std::vector<std::vector<std::string>> steps{
      {"truncate", "-s", "8M", image},
      {"mke2fs", "-q", "-F", "-t", "ext4", image},
      {"mount", "-t", "ext4", "-o", "loop", image, folder},
      {"umount", folder},
  };
  for (const auto& step : steps) {
    const Ran ran = run(step);
    if (!ran.ok()) {
      return fmt::format("'{}' does not work here: {}", step[0], first_line(ran.err));
    }
  }
  return "";
}

std::string look_for_tracing() {
  if (std::string why = why_no_mounts(); !why.empty()) {
    return why;
  }
  const fs::path instances = "/sys/kernel/tracing/instances";
  std::error_code error;
  if (!fs::is_directory(instances, error)) {
    run({"mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"});
  }
  if (!fs::is_directory(instances, error)) {
    return "no tracefs at /sys/kernel/tracing";
  }
  if (!fs::is_directory("/sys/kernel/tracing/events/jbd2", error)) {
    return "the kernel has no jbd2 trace events";
  }
  for (const char* tool : {"cc", "awk", "xz"}) {
    if (run({"sh", "-c", fmt::format("command -v {}", tool)}).exit_status != 0) {
      return fmt::format("recording needs {}", tool);
    }
  }
  return "";
}

}  // namespace

std::string why_no_mounts() {
  static const std::string kWhy = try_a_mount();
  return kWhy;
}

std::string why_no_tracing() {
  static const std::string kWhy = look_for_tracing();
  return kWhy;
}

std::unique_ptr<LoopDevice> LoopDevice::attach(const fs::path& image, Access access) {
  std::vector<std::string> argv{"losetup", "--show", "-f"};
  if (access == Access::read_only) {
    argv.emplace_back("-r");
  }
  argv.push_back(image.string());
  const std::string name = first_line(must_run(argv));
  return name.empty() ? nullptr : std::unique_ptr<LoopDevice>{new LoopDevice{name}};
}

LoopDevice::~LoopDevice() { must_run({"losetup", "-d", name_}); }

struct Mount::State {
  TempDir dir;
  std::unique_ptr<LoopDevice> loop;
  fs::path folder;
};

Mount::Mount(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<Mount> Mount::mount(const fs::path& image, LoopDevice::Access access,
                                    const std::string& options) {
  auto state = std::make_unique<State>();
  state->loop = LoopDevice::attach(image, access);
  if (state->loop == nullptr) {
    return nullptr;
  }
  state->folder = state->dir.path() / "m";
  fs::create_directory(state->folder);
  const std::vector<std::string> argv{
      "mount", "-t", "ext4", "-o", options, state->loop->name(), state->folder.string()};
  const Ran ran = run(argv);
  if (!ran.ok()) {
    ADD_FAILURE() << describe(argv, ran);
    return nullptr;
  }
  return std::unique_ptr<Mount>{new Mount{std::move(state)}};
}

Mount::~Mount() { must_run({"umount", state_->folder.string()}); }

const fs::path& Mount::folder() const noexcept { return state_->folder; }

void record(const fs::path& script, int repeats, int image_mib, const std::string& mkfs,
            const std::string& mount, const fs::path& recording) {
  const TempDir dir;  // on a tmpfs where there is one
  must_run({(source_dir() / "tests/kernel/record/record.sh").string(), "-r",
            std::to_string(repeats), "-s", std::to_string(image_mib), "-k", mkfs, "-o", mount, "-b",
            dir.path().string(), script.string(), recording.string()});
}

}  // namespace jbdlab::test
