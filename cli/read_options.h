#pragma once

#include "analyze/subject.h"
#include "base/result.h"
#include "cli/arguments.h"

// What every verb that reads a file system takes.
namespace jbdlab::cli {

void add_read_options(Syntax& syntax);  // --offset, --volume-size, --journal, --exported
// Errors: usage.
Result<analyze::SubjectNames> read_options(const Arguments& arguments);

}  // namespace jbdlab::cli
