#pragma once

#include "base/result.h"

namespace jbdlab::cli {

// What the program tells the shell; the same for every verb.
enum class ExitStatus : int {
  ok = 0,        // done, and nothing wrong
  findings = 1,  // done, and something is wrong with what was looked at
  usage = 2,     // asked for something that cannot be asked
  input = 3,     // an input cannot be read, or is not what it should be
  output = 4,    // an output could not be written
};

// The status for an error that an input or an option caused.
constexpr ExitStatus exit_status_of(const Error& error) noexcept {
  return error.code == Errc::usage ? ExitStatus::usage : ExitStatus::input;
}

}  // namespace jbdlab::cli
