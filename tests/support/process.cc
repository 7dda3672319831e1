#include "tests/support/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "tests/support/files.h"

namespace jbdlab::test {
namespace {

using std::chrono::steady_clock;

// In the child, between fork and exec: nothing here allocates.
[[noreturn]] void exec_child(char* const* argv, const char* folder, int out, int err) {
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0 ||
      (folder[0] != '\0' && ::chdir(folder) != 0)) {
    ::_exit(126);
  }
  ::setpgid(0, 0);
  ::execvp(argv[0], argv);
  ::_exit(127);
}

std::string path_with_sbin() {
  const char* path = std::getenv("PATH");
  return fmt::format("{}:/usr/sbin:/sbin", path != nullptr ? path : "/usr/bin:/bin");
}

void wait_for(::pid_t child, const RunOptions& options, Ran& ran) {
  const auto deadline = steady_clock::now() + options.timeout;
  auto pause = std::chrono::microseconds{200};
  int status = 0;
  for (;;) {
    const ::pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child) {
      break;
    }
    if (done < 0 && errno != EINTR) {
      return;
    }
    if (!ran.timed_out && steady_clock::now() > deadline) {
      ran.timed_out = true;
      ::kill(-child, SIGKILL);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds{10'000});
  }
  if (WIFEXITED(status)) {
    ran.exit_status = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    ran.signal = WTERMSIG(status);
  }
}

}  // namespace

Ran run(const std::vector<std::string>& argv, const RunOptions& options) {
  const TempDir scratch;
  const auto out_path = scratch.path() / "out";
  const auto err_path = scratch.path() / "err";
  const int out = ::open(out_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const int err = ::open(err_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

  // Set here and not in the child, where setenv is not safe; tests start processes from one thread.
  std::vector<std::pair<std::string, std::string>> added = options.environment;
  added.emplace_back("PATH", path_with_sbin());
  std::vector<std::pair<std::string, std::string>> before;
  std::vector<std::string> unset;
  for (const auto& [name, value] : added) {
    if (const char* old = std::getenv(name.c_str())) {
      before.emplace_back(name, old);
    } else {
      unset.push_back(name);
    }
    ::setenv(name.c_str(), value.c_str(), 1);
  }

  std::vector<std::string> copy = argv;
  std::vector<char*> pointers;
  for (auto& word : copy) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);

  Ran ran;
  const ::pid_t child = ::fork();
  if (child == 0) {
    exec_child(pointers.data(), options.folder.c_str(), out, err);
  }
  if (child > 0) {
    wait_for(child, options, ran);
  }
  for (const auto& [name, value] : before) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  for (const auto& name : unset) {
    ::unsetenv(name.c_str());
  }
  ::close(out);
  ::close(err);
  ran.out = read_file(out_path);
  ran.err = read_file(err_path);
  return ran;
}

std::string describe(const std::vector<std::string>& argv, const Ran& ran) {
  std::string end = fmt::format("exit {}", ran.exit_status);
  if (ran.timed_out) {
    end = "no answer in time";
  } else if (ran.signal != 0) {
    end = fmt::format("signal {}", ran.signal);
  }
  const auto tail = [](const std::string& text) {
    return text.size() <= 2000 ? text : "…" + text.substr(text.size() - 2000);
  };
  return fmt::format("{}: {}\n{}{}", fmt::join(argv, " "), end, tail(ran.out), tail(ran.err));
}

std::string must_run(const std::vector<std::string>& argv, const RunOptions& options) {
  Ran ran = run(argv, options);
  if (!ran.ok()) {
    ADD_FAILURE() << describe(argv, ran);
    return {};
  }
  return std::move(ran.out);
}

}  // namespace jbdlab::test
