#include "cli/console.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>

namespace jbdlab::cli {

void Console::print(std::string_view text) noexcept {
  if (out_errno_ != 0 || text.empty()) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), out_) != text.size()) {
    out_errno_ = errno != 0 ? errno : EIO;
  }
}

void Console::say(std::string_view sentence) noexcept {
  std::fputs("jbdlab: ", messages_);
  std::fwrite(sentence.data(), 1, sentence.size(), messages_);
  std::fputc('\n', messages_);
}

ExitStatus Console::refuse(const Error& error) noexcept {
  say(error.what);
  return exit_status_of(error);
}

ExitStatus Console::refuse(std::string_view file, const Error& error) noexcept {
  std::fprintf(messages_, "jbdlab: %.*s: %s\n", static_cast<int>(file.size()), file.data(),
               error.what.c_str());
  return exit_status_of(error);
}

ExitStatus Console::help(std::string_view text) noexcept {
  print(text);
  return ExitStatus::ok;
}

Result<void> Console::finish() noexcept {
  errno = 0;
  if (std::fflush(out_) != 0 && out_errno_ == 0) {
    out_errno_ = errno != 0 ? errno : EIO;
  }
  if (out_errno_ == 0) return {};
  return fail(Errc::io,
              fmt::format("cannot write to standard output: {}", std::strerror(out_errno_)));
}

}  // namespace jbdlab::cli
