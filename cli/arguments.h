#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jbdlab::cli {

// What a verb can be told: its options, and the arguments without a name.
struct Syntax {
  std::string_view verb;
  std::string_view synopsis;     // "IMAGE [options]"
  std::string_view description;  // a paragraph for `jbdlab help VERB`
  boost::program_options::options_description options{"Options"};
  std::size_t arguments_min = 0;
  std::size_t arguments_max = 0;

  // Adds --json, --no-progress and --help, which every verb takes.
  void add_common_options();
  std::string help() const;
};

// The words behind the verb, held against its syntax. Every value is a string here: what it means
// is for values.h, whose sentences are better than Boost's.
class Arguments {
 public:
  // Errors: usage. What Boost throws for a malformed command line is left to main().
  static Result<Arguments> parse(const Syntax& syntax, const std::vector<std::string>& words);

  bool has(const std::string& option) const { return values_.count(option) != 0; }
  bool flag(const std::string& option) const { return has(option); }
  // Value of an option that was declared with a string; empty if it was not given.
  std::optional<std::string> value(const std::string& option) const;
  const std::vector<std::string>& positional() const noexcept { return positional_; }

 private:
  boost::program_options::variables_map values_;
  std::vector<std::string> positional_;
};

// `parse(value)` with the name of the option before a failure's sentence; nothing if not given.
template <class Parse>
auto parse_option(const Arguments& arguments, const std::string& option, Parse parse)
    -> Result<std::optional<typename decltype(parse(std::string_view{}))::value_type>> {
  const auto text = arguments.value(option);
  if (!text) return std::nullopt;
  auto value = parse(std::string_view{*text});
  if (!value) return fail(Errc::usage, "--" + option + ": " + value.error().what);
  return *value;
}

}  // namespace jbdlab::cli
