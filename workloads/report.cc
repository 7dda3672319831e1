#include "workloads/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace jbdlab::workloads {
namespace {

using Json = nlohmann::ordered_json;

// `amount` in 1000 s; what does not fit is the greatest number.
std::uint64_t per_kilosecond(std::uint64_t amount, Duration elapsed) {
  __extension__ using Wide = unsigned __int128;
  if (elapsed <= Duration::zero()) return 0;
  const auto ns = static_cast<std::uint64_t>(elapsed.count());
  const Wide rate = (static_cast<Wide>(amount) * 1'000'000'000'000 + ns / 2) / ns;
  return static_cast<std::uint64_t>(
      std::min<Wide>(rate, std::numeric_limits<std::uint64_t>::max()));
}

std::uint64_t elapsed_ns(Duration elapsed) {
  CHECK(elapsed >= Duration::zero());
  return static_cast<std::uint64_t>(elapsed.count());
}

Json to_json(const std::vector<NamedValue>& values) {
  Json out = Json::object();
  for (const NamedValue& v : values)
    std::visit([&](const auto& value) { out[v.name] = value; }, v.value);
  return out;
}

Json to_json(const Provenance& p) {
  return {
      {"version", p.version},
      {"build_type", p.build_type},
      {"compiler", p.compiler},
      {"workload", p.workload},
      {"workload_parameters", to_json(p.workload_parameters)},
      {"workload_digest", p.workload_digest},
      {"mkfs", p.mkfs_options},
      {"mount", p.mount_options},
      {"image", p.image},
      {"image_digest", p.image_digest},
      {"image_size_bytes", p.image_size_bytes},
      {"device", p.device},
      {"device_parameters", to_json(p.device_parameters)},
      {"kernel", p.kernel},
      {"settings", to_json(p.settings)},
      {"cpus", p.cpus},
      {"seed", p.seed},
  };
}

Json config_to_json(const Report& report) {
  const RunConfig& c = report.config;
  std::string features;
  for (const std::string& f : c.features) features += (features.empty() ? "" : " ") + f;
  return {
      {"name", report.provenance.workload},
      {"kernel", report.provenance.kernel},
      {"mkfs", report.provenance.mkfs_options},
      {"mount", report.provenance.mount_options},
      {"mount_effective", c.mount_effective},
      {"image_mib", report.provenance.image_size_bytes >> 20},
      {"block_size", c.block_size},
      {"device", report.provenance.device},
      {"features", features},
      {"journal_blocks", c.journal_blocks},
      {"journal_fc_blocks", c.journal_fc_blocks},
      {"threads", c.threads},
  };
}

Json phase_to_json(const PhaseReport& phase) {
  Json out;
  out["elapsed_ns"] = elapsed_ns(phase.elapsed);
  out.update(workloads::to_json(phase.counters));
  return out;
}

// A rate has three decimals: correctly rounded division makes the same double everywhere.
double rate(std::uint64_t per_ks) { return static_cast<double>(per_ks) / 1000.0; }

Json to_json(const Throughput& t) {
  return {
      {"ops_per_s", rate(t.ops_per_ks)},
      {"fsyncs_per_s", rate(t.fsyncs_per_ks)},
      {"commits_per_s", rate(t.commits_per_ks)},
      {"fast_commits_per_s", rate(t.fast_commits_per_ks)},
      {"bytes_written_per_s", rate(t.bytes_written_per_ks)},
      {"bytes_read_per_s", rate(t.bytes_read_per_ks)},
  };
}

Json to_json(const Histogram& h) {
  return {
      {"count", h.count()},         {"p50", h.at_per_mille(500)},  {"p95", h.at_per_mille(950)},
      {"p99", h.at_per_mille(990)}, {"p999", h.at_per_mille(999)}, {"max", h.max()},
  };
}

}  // namespace

PhaseReport& Report::phase(std::string_view name) {
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [&](const PhaseReport& p) { return p.name == name; });
  if (found != phases.end()) return *found;
  return phases.emplace_back(PhaseReport{.name = std::string(name)});
}

const PhaseReport* Report::find_phase(std::string_view name) const {
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [&](const PhaseReport& p) { return p.name == name; });
  return found == phases.end() ? nullptr : &*found;
}

Throughput throughput(const Report& report) {
  const PhaseReport* const run = report.find_phase("run");
  if (run == nullptr) return {};
  const PhaseCounters& c = run->counters;
  const auto rate_of = [&](std::uint64_t amount) { return per_kilosecond(amount, run->elapsed); };
  return {
      .ops_per_ks = rate_of(c.ops_total()),
      .fsyncs_per_ks = rate_of(c.sim.fsync_calls + c.sim.fdatasync_calls),
      .commits_per_ks = rate_of(c.sim.full_commits),
      .fast_commits_per_ks = rate_of(c.sim.fc_status[sim::FcStatus::ok]),
      .bytes_written_per_ks = rate_of(c.bytes_written),
      .bytes_read_per_ks = rate_of(c.bytes_read),
  };
}

std::string text_digest(std::string_view text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a, 64 bits
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x0000'0100'0000'01b3;
  }
  return fmt::format("fnv1a64:{:016x}", hash);
}

Json to_json(const Report& report) {
  Json out;
  out["schema"] = "jbdlab.run/1";
  out["provenance"] = to_json(report.provenance);
  out["config"] = config_to_json(report);
  Json& order = out["phase_order"] = Json::array();
  for (const PhaseReport& phase : report.phases) order.push_back(phase.name);
  Json& phases = out["phases"] = Json::object();
  for (const PhaseReport& phase : report.phases) phases[phase.name] = phase_to_json(phase);
  out["elapsed_ns"] = elapsed_ns(report.elapsed);
  out["throughput"] = to_json(throughput(report));
  Json& latency = out["latency_ns"] = Json::object();
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (report.latency_ns[kind].count() != 0)
      latency[std::string(op_name(kind))] = to_json(report.latency_ns[kind]);
  }
  out["failure"] = nullptr;
  if (report.failure)
    out["failure"] = {{"line", report.failure->line},
                      {"operation", report.failure->operation},
                      {"what", report.failure->what}};
  return out;
}

}  // namespace jbdlab::workloads
