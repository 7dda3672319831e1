#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <boost/program_options/errors.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_info.h"
#include "cli/console.h"
#include "cli/exit_status.h"
#include "cli/suggest.h"
#include "cli/verbs.h"

namespace jbdlab::cli {
namespace {

constexpr std::array kVerbs = std::to_array<Verb>({
    {"run", "replay an operation script on a simulated ext4 and its journal", cmd_run},
    {"inspect", "features, geometry and journal superblock of a file system", cmd_inspect},
    {"log", "every transaction and fast commit in a journal", cmd_log},
    {"stats", "what the journal adds up to: sizes, kinds and times of its commits", cmd_stats},
});

std::string usage() {
  std::string text =
      "Usage: jbdlab VERB [options] [arguments]\n"
      "\n"
      "Simulates ext4's journal, reads real ones, and explains both.\n"
      "\n";
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  text +=
      "  help VERB  options of a verb\n"
      "\n"
      "  --version  version, build type and compiler\n"
      "\n"
      "Exit status: 0 nothing wrong, 1 findings, 2 wrong usage, 3 unusable input, 4 output "
      "failed.\n";
  return text;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

ExitStatus unknown_verb(std::string_view name, Console& console) {
  std::vector<std::string_view> names{"help", "--help", "--version"};
  for (const Verb& verb : kVerbs) names.push_back(verb.name);
  console.say(fmt::format("unknown {} {}{}", name.starts_with('-') ? "option" : "verb", name,
                          did_you_mean(name, names)));
  return ExitStatus::usage;
}

ExitStatus help(const std::vector<std::string>& words, Console& console) {
  if (words.empty()) {
    console.print(usage());
    return ExitStatus::ok;
  }
  const Verb* verb = find_verb(words.front());
  return verb == nullptr ? unknown_verb(words.front(), console)
                         : verb->function({"--help"}, console);
}

ExitStatus run(const std::vector<std::string>& words, Console& console) {
  if (words.empty()) {
    std::fputs(usage().c_str(), stderr);
    return ExitStatus::usage;
  }
  const std::string& name = words.front();
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (name == "--version") {
    console.print(fmt::format("jbdlab {} ({}, {})\n", version(), build_type(), compiler()));
    return ExitStatus::ok;
  }
  if (name == "help" || name == "--help" || name == "-h") return help(rest, console);
  const Verb* verb = find_verb(name);
  return verb == nullptr ? unknown_verb(name, console) : verb->function(rest, console);
}

Console::Looks looks_of_terminal() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = (no_color != nullptr && *no_color != '\0') ||
                     (term != nullptr && std::string_view{term} == "dumb");
  return {.color = ::isatty(STDOUT_FILENO) != 0 && !plain,
          .progress = ::isatty(STDERR_FILENO) != 0};
}

}  // namespace
}  // namespace jbdlab::cli

int main(int argc, char** argv) {
  using jbdlab::cli::Console;
  using jbdlab::cli::ExitStatus;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is a failed write, not our death
  Console console{stdout, stderr, jbdlab::cli::looks_of_terminal()};
  ExitStatus status;
  try {
    status = jbdlab::cli::run(std::vector<std::string>(argv + 1, argv + argc), console);
  } catch (const boost::program_options::error& error) {
    console.say(error.what());
    status = ExitStatus::usage;
  } catch (const std::bad_alloc&) {
    console.say("out of memory");
    status = ExitStatus::input;
  } catch (const std::exception& error) {
    console.say(fmt::format("unexpected: {}", error.what()));
    status = ExitStatus::input;
  }
  if (const auto written = console.finish(); !written) {
    console.say(written.error().what);
    status = ExitStatus::output;
  }
  return static_cast<int>(status);
}
