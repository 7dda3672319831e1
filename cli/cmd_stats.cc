#include "analyze/log_report.h"
#include "analyze/stats.h"
#include "analyze/stats_print.h"
#include "analyze/subject.h"
#include "cli/arguments.h"
#include "cli/read_options.h"
#include "cli/verbs.h"

namespace jbdlab::cli {
namespace {

Syntax syntax() {
  Syntax syntax{
      .verb = "stats",
      .synopsis = "IMAGE [options]",
      .description =
          "Adds up what is in the journal: transactions, blocks by kind, how large commits\n"
          "are and how often they come, how often the same block is logged again, and how\n"
          "full the ring and the fast-commit area are. IMAGE is a file or a block device;\n"
          "it is only read.",
      .arguments_min = 1,
      .arguments_max = 1};
  syntax.options.add_options()("all", "also what is left of older generations")(
      "csv", "print a table of the commits instead of text");
  add_read_options(syntax);
  syntax.add_common_options();
  return syntax;
}

}  // namespace

ExitStatus cmd_stats(const std::vector<std::string>& words, Console& console) {
  const Syntax grammar = syntax();
  const auto arguments = Arguments::parse(grammar, words);
  if (!arguments) return console.refuse(arguments.error());
  if (arguments->flag("help")) return console.help(grammar.help());
  if (arguments->flag("json") && arguments->flag("csv")) {
    return console.refuse({Errc::usage, 0, "--json and --csv exclude each other"});
  }
  const auto names = read_options(*arguments);
  if (!names) return console.refuse(names.error());

  auto subject = analyze::open_subject(*names);
  if (!subject) return console.refuse(subject.error());
  const auto log =
      analyze::read_log_report(*subject, {.all = arguments->flag("all"), .tids = {}, .inode = {}});
  if (!log) return console.refuse(names->image, log.error());
  const analyze::StatsReport report = analyze::stats_of(*log);

  const auto print = [&](std::string_view text) { console.print(text); };
  if (arguments->flag("json")) {
    analyze::write_stats_json(report, names->image, print);
  } else if (arguments->flag("csv")) {
    analyze::write_stats_csv(report, print);
  } else {
    analyze::write_stats_text(report, names->image, {.color = console.color()}, print);
  }
  return analyze::is_anything_wrong(report.findings) ? ExitStatus::findings : ExitStatus::ok;
}

}  // namespace jbdlab::cli
