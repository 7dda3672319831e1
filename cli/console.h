#pragma once

#include <cstdio>
#include <string_view>

#include "base/result.h"
#include "cli/exit_status.h"

namespace jbdlab::cli {

// Where a verb's answer and its messages go: the answer to standard output, sentences for people to
// standard error. A write that fails is remembered, and finish() tells; so a verb need not look at
// each.
class Console {
 public:
  // Borrows both streams. Colours and progress: whether people look at a terminal that shows them.
  struct Looks {
    bool color = false;     // of standard output
    bool progress = false;  // on standard error
  };
  Console(std::FILE* out, std::FILE* messages, Looks looks) noexcept
      : out_(out), messages_(messages), looks_(looks) {}

  void print(std::string_view text) noexcept;
  // One sentence, without a full stop at its end needed; becomes a line "jbdlab: sentence".
  void say(std::string_view sentence) noexcept;

  // The ends of a verb that does not come to its answer, for `return console.refuse(error)`.
  ExitStatus refuse(const Error& error) noexcept;
  ExitStatus refuse(std::string_view file, const Error& error) noexcept;
  ExitStatus help(std::string_view text) noexcept;

  bool color() const noexcept { return looks_.color; }
  bool progress() const noexcept { return looks_.progress; }

  // Flushes the answer. Errors: io (a full disk, a reader that went away), once for all writes.
  Result<void> finish() noexcept;

 private:
  std::FILE* out_;
  std::FILE* messages_;
  Looks looks_;
  int out_errno_ = 0;  // of the first write that failed
};

}  // namespace jbdlab::cli
