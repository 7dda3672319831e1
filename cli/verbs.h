#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/exit_status.h"

namespace jbdlab::cli {

// One verb of the program. A verb parses its words into a struct, checks all that needs no file,
// makes one library call and prints. With --help among its words it prints its help instead.
using VerbFunction = ExitStatus (*)(const std::vector<std::string>& words, Console& console);
struct Verb {
  std::string_view name;
  std::string_view summary;
  VerbFunction function;
};

// One file each: cmd_<verb>.cc.
ExitStatus cmd_inspect(const std::vector<std::string>& words, Console& console);
ExitStatus cmd_run(const std::vector<std::string>& words, Console& console);
ExitStatus cmd_log(const std::vector<std::string>& words, Console& console);
ExitStatus cmd_stats(const std::vector<std::string>& words, Console& console);

}  // namespace jbdlab::cli
