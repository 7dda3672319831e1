#include "cli/arguments.h"

#include <fmt/core.h>

#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <sstream>

#include "cli/suggest.h"

namespace jbdlab::cli {
namespace po = boost::program_options;

void Syntax::add_common_options() {
  options.add_options()("json", "print one JSON document instead of text")(
      "no-progress", "no progress on a terminal")("help,h", "print this");
}

std::string Syntax::help() const {
  std::ostringstream text;
  text << "Usage: jbdlab " << verb << ' ' << synopsis << "\n\n" << description << "\n\n" << options;
  return text.str();
}

Result<Arguments> Arguments::parse(const Syntax& syntax, const std::vector<std::string>& words) {
  // No abbreviations: a script must not change its meaning when an option is added.
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  const auto parsed = po::command_line_parser(words)
                          .options(syntax.options)
                          .style(style)
                          .allow_unregistered()
                          .run();

  Arguments result;
  for (const auto& option : parsed.options) {
    if (option.position_key >= 0) {
      result.positional_.insert(result.positional_.end(), option.value.begin(), option.value.end());
    } else if (option.unregistered) {
      std::vector<std::string> names;
      for (const auto& known : syntax.options.options()) names.push_back("--" + known->long_name());
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string& word = option.original_tokens.front();
      const std::string name = word.substr(0, word.find('='));
      return fail(Errc::usage, fmt::format("{}: unknown option {}{}", syntax.verb, name,
                                           did_you_mean(name, candidates)));
    }
  }
  po::store(parsed, result.values_);
  po::notify(result.values_);
  if (result.has("help")) return result;

  const std::size_t count = result.positional_.size();
  if (count < syntax.arguments_min) {
    return fail(Errc::usage, fmt::format("{}: an argument is missing; usage: jbdlab {} {}",
                                         syntax.verb, syntax.verb, syntax.synopsis));
  }
  if (count > syntax.arguments_max) {
    return fail(Errc::usage, fmt::format("{}: unexpected argument \"{}\"; usage: jbdlab {} {}",
                                         syntax.verb, result.positional_[syntax.arguments_max],
                                         syntax.verb, syntax.synopsis));
  }
  return result;
}

std::optional<std::string> Arguments::value(const std::string& option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return std::nullopt;
  return found->second.as<std::string>();
}

}  // namespace jbdlab::cli
