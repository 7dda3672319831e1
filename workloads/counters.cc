#include "workloads/counters.h"

#include <string>
#include <string_view>

namespace jbdlab::workloads {
namespace {

using Json = nlohmann::ordered_json;

// Sets out[name], where a dot in `name` is a level of `out`.
void set_nested(Json& out, std::string_view name, std::uint64_t value) {
  Json* at = &out;
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    at = &(*at)[std::string(name.substr(0, dot))];
    name.remove_prefix(dot + 1);
  }
  (*at)[std::string(name)] = value;
}

// Merges equal neighbours: each becomes row(item) with the number of times appended.
template <class T, class Row>
Json run_lengths(std::span<const T> items, Row row) {
  Json out = Json::array();
  Json last;
  std::uint64_t times = 0;
  const auto close = [&] {
    if (times == 0) return;
    last.push_back(times);
    out.push_back(std::move(last));
  };
  for (const T& item : items) {
    Json next = row(item);
    if (times != 0 && next == last) {
      ++times;
      continue;
    }
    close();
    last = std::move(next);
    times = 1;
  }
  close();
  return out;
}

template <class Enum, class Names>
Json named(const sim::EnumArray<Enum>& values, const Names& names) {
  Json out = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i)
    out[std::string(names[i])] = values[static_cast<Enum>(i)];
  return out;
}

Json ops_to_json(const sim::EnumArray<OpKind>& ops) {
  Json out = Json::object();
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (!is_meeting(kind)) out[std::string(op_name(kind))] = ops[kind];
  }
  return out;
}

Json fc_track_to_json(const sim::SimCounters& counters) {
  Json out = named(counters.fc_track, sim::kFcTrackNames);
  for (std::size_t i = 0; i < sim::kFcTrackNames.size(); ++i)
    out[std::string(sim::kFcTrackNames[i]) + "_refused"] =
        counters.fc_track_refused[static_cast<sim::FcTrack>(i)];
  return out;
}

}  // namespace

std::uint64_t PhaseCounters::ops_total() const {
  std::uint64_t total = 0;
  for (const std::uint64_t count : ops) total += count;
  return total;
}

PhaseCounters& PhaseCounters::operator+=(const PhaseCounters& later) {
  ops += later.ops;
  bytes_written += later.bytes_written;
  bytes_read += later.bytes_read;
  sim += later.sim;
  return *this;
}

Json transactions_rle(std::span<const sim::TransactionRecord> transactions) {
  return run_lengths(transactions, [](const sim::TransactionRecord& t) {
    return Json::array({t.handles, t.blocks, t.blocks_logged});
  });
}

Json fc_results_rle(std::span<const std::int32_t> results) {
  return run_lengths(results, [](std::int32_t result) { return Json::array({result}); });
}

Json to_json(const PhaseCounters& counters) {
  const sim::SimCounters& sim = counters.sim;
  Json out;
  out["ops_total"] = counters.ops_total();
  out["ops"] = ops_to_json(counters.ops);
  out["bytes_written"] = counters.bytes_written;
  out["bytes_read"] = counters.bytes_read;
  for (const sim::NamedTotal& total : sim::kTotals) set_nested(out, total.name, sim.*total.member);
  for (std::size_t i = 0; i < sim::kFcStatusNames.size(); ++i)
    out[std::string(sim::kFcStatusNames[i])] = sim.fc_status[static_cast<sim::FcStatus>(i)];
  out["sectors"] = named(sim.sectors, sim::kSectorClassNames);
  out["journal_starts"] = named(sim.journal_starts, sim::kHandleTypeNames);
  out["fc_track"] = fc_track_to_json(sim);
  out["transactions_rle"] = transactions_rle(sim.transactions);
  out["fc_results_rle"] = fc_results_rle(sim.fc_results);
  return out;
}

}  // namespace jbdlab::workloads
