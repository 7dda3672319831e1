#pragma once

#include "analyze/log_report.h"
#include "analyze/report_json.h"

namespace jbdlab::analyze {

// The log as one table below a line of names (RFC 4180, but lines end with a line feed): a row for
// each logged block ("block"), each revoked one ("revoke"), and each tag of a fast commit, by its
// name. If the report has the history of an inode: a row for each version of it instead.
void write_log_csv(const LogReport& report, const Sink& sink);

}  // namespace jbdlab::analyze
