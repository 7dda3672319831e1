#include <boost/program_options/value_semantic.hpp>
#include <limits>
#include <optional>

#include "analyze/log_csv.h"
#include "analyze/log_report.h"
#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "analyze/subject.h"
#include "cli/arguments.h"
#include "cli/read_options.h"
#include "cli/values.h"
#include "cli/verbs.h"

namespace jbdlab::cli {
namespace {

namespace po = boost::program_options;

Syntax syntax() {
  Syntax syntax{
      .verb = "log",
      .synopsis = "IMAGE [options]",
      .description =
          "Lists every transaction and fast commit in the journal: whether recovery takes\n"
          "it, what each of its blocks is, what it revokes, and the verdict of every\n"
          "checksum. IMAGE is a file or a block device; it is only read.",
      .arguments_min = 1,
      .arguments_max = 1};
  syntax.options.add_options()("all", "also what is left of older generations")(
      "tid", po::value<std::string>()->value_name("N[..M]"), "only these transactions")(
      "inode", po::value<std::string>()->value_name("N"),
      "only what this inode is in, and its history: size, links, times, blocks")(
      "csv", "print a table of blocks and tags (of versions with --inode) instead of text");
  add_read_options(syntax);
  syntax.add_common_options();
  return syntax;
}

Result<Ino> parse_inode(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) return std::unexpected(number.error());
  if (*number == 0 || *number > std::numeric_limits<std::uint32_t>::max()) {
    return fail(Errc::usage, "expected an inode number, found \"" + std::string{text} + "\"");
  }
  return Ino{static_cast<std::uint32_t>(*number)};
}

Result<analyze::LogOptions> log_options(const Arguments& arguments) {
  analyze::LogOptions options;
  options.all = arguments.flag("all");
  const auto tids = parse_option(arguments, "tid", parse_tid_range);
  if (!tids) return std::unexpected(tids.error());
  if (const std::optional<TidRange>& range = *tids) {
    options.tids = {.first = range->first, .last = range->last};
  }
  const auto inode = parse_option(arguments, "inode", parse_inode);
  if (!inode) return std::unexpected(inode.error());
  options.inode = *inode;
  return options;
}

}  // namespace

ExitStatus cmd_log(const std::vector<std::string>& words, Console& console) {
  const Syntax grammar = syntax();
  const auto arguments = Arguments::parse(grammar, words);
  if (!arguments) return console.refuse(arguments.error());
  if (arguments->flag("help")) return console.help(grammar.help());
  if (arguments->flag("json") && arguments->flag("csv")) {
    return console.refuse({Errc::usage, 0, "--json and --csv exclude each other"});
  }
  const auto options = log_options(*arguments);
  if (!options) return console.refuse(options.error());
  const auto names = read_options(*arguments);
  if (!names) return console.refuse(names.error());

  auto subject = analyze::open_subject(*names);
  if (!subject) return console.refuse(subject.error());
  const auto report = analyze::read_log_report(*subject, *options);
  if (!report) return console.refuse(names->image, report.error());

  const auto print = [&](std::string_view text) { console.print(text); };
  if (arguments->flag("json")) {
    analyze::write_log_json(*report, names->image, print);
  } else if (arguments->flag("csv")) {
    analyze::write_log_csv(*report, print);
  } else {
    analyze::write_log_text(*report, names->image, {.color = console.color()}, print);
  }
  return analyze::is_anything_wrong(report->findings) ? ExitStatus::findings : ExitStatus::ok;
}

}  // namespace jbdlab::cli
