#pragma once

#include <string_view>

#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "analyze/stats.h"

// The statistics of a log for people, for programs and for spreadsheets.
namespace jbdlab::analyze {

void write_stats_text(const StatsReport& report, std::string_view image, TextOptions options,
                      const Sink& sink);
void write_stats_json(const StatsReport& report, std::string_view image, const Sink& sink);
// A row for each full commit, in log order, below a line of names (RFC 4180, but lines end with a
// line feed).
void write_stats_csv(const StatsReport& report, const Sink& sink);

}  // namespace jbdlab::analyze
