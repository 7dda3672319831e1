#include "cli/read_options.h"

#include <boost/program_options/value_semantic.hpp>

#include "cli/values.h"

namespace jbdlab::cli {
namespace po = boost::program_options;

void add_read_options(Syntax& syntax) {
  syntax.options.add_options()("offset", po::value<std::string>()->value_name("BYTES"),
                               "the volume begins there in IMAGE (4096, 1M, …)")(
      "volume-size", po::value<std::string>()->value_name("BYTES"),
      "and is that long; nothing outside of it is read")(
      "journal", po::value<std::string>()->value_name("FILE"),
      "the journal device, if the journal is on one")(
      "exported", "IMAGE is a bare journal, as dumped from inode 8");
}

Result<analyze::SubjectNames> read_options(const Arguments& arguments) {
  analyze::SubjectNames names;
  names.image = arguments.positional().front();
  const auto offset = parse_option(arguments, "offset", parse_size);
  if (!offset) return std::unexpected(offset.error());
  const auto size = parse_option(arguments, "volume-size", parse_size);
  if (!size) return std::unexpected(size.error());
  names.place = {.offset = offset->value_or(0), .size = *size};
  names.journal_device = arguments.value("journal");
  names.exported = arguments.flag("exported");
  if (names.exported && names.journal_device) {
    return fail(Errc::usage, "--exported and --journal exclude each other");
  }
  return names;
}

}  // namespace jbdlab::cli
