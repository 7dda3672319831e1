#include "analyze/inspect.h"
#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "analyze/subject.h"
#include "cli/arguments.h"
#include "cli/read_options.h"
#include "cli/verbs.h"

namespace jbdlab::cli {
namespace {

Syntax syntax() {
  Syntax syntax{
      .verb = "inspect",
      .synopsis = "IMAGE [options]",
      .description =
          "Shows what the superblocks of a file system and of its journal say: features,\n"
          "geometry, whether it needs recovery, which software can use it, and what does\n"
          "not fit together. IMAGE is a file or a block device; it is only read.",
      .arguments_min = 1,
      .arguments_max = 1};
  add_read_options(syntax);
  syntax.add_common_options();
  return syntax;
}

}  // namespace

ExitStatus cmd_inspect(const std::vector<std::string>& words, Console& console) {
  const Syntax grammar = syntax();
  const auto arguments = Arguments::parse(grammar, words);
  if (!arguments) return console.refuse(arguments.error());
  if (arguments->flag("help")) return console.help(grammar.help());
  const auto names = read_options(*arguments);
  if (!names) return console.refuse(names.error());

  auto subject = analyze::open_subject(*names);
  if (!subject) return console.refuse(subject.error());
  const analyze::InspectReport report = analyze::inspect(*subject);

  const auto print = [&](std::string_view text) { console.print(text); };
  if (arguments->flag("json")) {
    analyze::write_inspect_json(report, names->image, print);
  } else {
    analyze::write_inspect_text(report, names->image, {.color = console.color()}, print);
  }
  return analyze::is_anything_wrong(report.findings) ? ExitStatus::findings : ExitStatus::ok;
}

}  // namespace jbdlab::cli
