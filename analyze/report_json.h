#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "analyze/inspect.h"
#include "analyze/log_report.h"

// The reports as JSON documents: the keys of design/cli.md, in its order.
namespace jbdlab::analyze {

// Takes the next piece of a document.
using Sink = std::function<void(std::string_view)>;

void write_inspect_json(const InspectReport& report, std::string_view image, const Sink& sink);
// A transaction and a fast commit a line: a large log never is one object in memory.
void write_log_json(const LogReport& report, std::string_view image, const Sink& sink);

nlohmann::ordered_json json_of(const std::vector<jbd2::Finding>& findings);

}  // namespace jbdlab::analyze
