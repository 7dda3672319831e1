#pragma once

#include <string_view>
#include <vector>

#include "analyze/inspect.h"
#include "analyze/log_report.h"
#include "analyze/report_json.h"

// The reports for people: tables of at most 100 columns.
namespace jbdlab::analyze {

struct TextOptions {
  bool color = false;  // ANSI colours
};

void write_inspect_text(const InspectReport& report, std::string_view image, TextOptions options,
                        const Sink& sink);
void write_log_text(const LogReport& report, std::string_view image, TextOptions options,
                    const Sink& sink);

}  // namespace jbdlab::analyze
