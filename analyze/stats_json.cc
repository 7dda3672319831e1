#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyze/stats_print.h"

namespace jbdlab::analyze {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json json_of(const Distribution& d) {
  return {{"count", d.count}, {"sum", d.sum}, {"mean", d.mean()}, {"min", d.min},
          {"p50", d.p50},     {"p90", d.p90}, {"p99", d.p99},     {"max", d.max}};
}

ordered_json json_of(const std::array<std::uint64_t, kBlockKindCount>& counts) {
  ordered_json json = ordered_json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    json[std::string{to_string(static_cast<BlockKind>(i))}] = counts[i];
  }
  return json;
}

ordered_json tags_json(const std::vector<std::uint64_t>& counts) {
  ordered_json json = ordered_json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string_view name = jbd2::to_string(static_cast<jbd2::FcTag>(i));
    if (!name.empty()) json[std::string{name}] = counts[i];
  }
  return json;
}

ordered_json json_of(const CommitRate& rate) {
  ordered_json slices = ordered_json::array();
  for (const CommitRate::Slice& slice : rate.slices) {
    slices.push_back({{"begin_ns", slice.begin_ns},
                      {"transactions", slice.transactions},
                      {"blocks_logged", slice.blocks_logged}});
  }
  return {{"first_commit_ns", or_null(rate.first_ns)},
          {"last_commit_ns", or_null(rate.last_ns)},
          {"span_ns", rate.span_ns()},
          {"times_set_back", rate.times_set_back},
          {"slice_ns", rate.slice_ns},
          {"slices", std::move(slices)}};
}

ordered_json json_of(const Fill& fill) { return {{"blocks", fill.blocks}, {"used", fill.used}}; }

ordered_json hottest_json(const StatsReport& report) {
  ordered_json rows = ordered_json::array();
  for (const HotBlock& block : report.hottest) {
    rows.push_back({{"fs_block", block.fs_block.value()},
                    {"kind", to_string(block.kind)},
                    {"times_logged", block.times_logged}});
  }
  return rows;
}

}  // namespace

void write_stats_json(const StatsReport& report, std::string_view image, const Sink& sink) {
  ordered_json json{{"schema", "jbdlab.stats/1"}, {"image", image}};
  json["block_size"] = report.block_size;
  json["totals"] = {{"transactions", report.transactions},
                    {"blocks", report.blocks},
                    {"blocks_logged", report.blocks_logged},
                    {"revokes", report.revokes},
                    {"fast_commits", report.fast_commits},
                    {"fast_commit_blocks", report.fast_commit_blocks},
                    {"distinct_blocks", report.distinct_blocks},
                    {"home_blocks", report.home_blocks},
                    {"transactions_left_out", report.transactions_left_out},
                    {"fast_commits_left_out", report.fast_commits_left_out}};
  json["by_kind"] = json_of(report.by_kind);
  json["distinct_by_kind"] = json_of(report.distinct_by_kind);
  json["fast_commit_tags"] = tags_json(report.fast_commit_tags);
  json["distributions"] = {{"blocks_per_commit", json_of(report.blocks_per_commit)},
                           {"bytes_per_commit", json_of(report.bytes_per_commit)},
                           {"commit_interval_ns", json_of(report.commit_interval_ns)},
                           {"times_logged", json_of(report.times_logged)},
                           {"blocks_per_fast_commit", json_of(report.blocks_per_fast_commit)}};
  json["write_amplification"] = or_null(report.write_amplification());
  json["hottest"] = hottest_json(report);
  json["rate"] = json_of(report.rate);
  json["ring"] = json_of(report.ring);
  json["fast_commit_area"] = json_of(report.fast_commit_area);
  json["findings"] = json_of(report.findings);
  sink(json.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  sink("\n");
}

void write_stats_csv(const StatsReport& report, const Sink& sink) {
  const auto or_nothing = [](const std::optional<std::uint64_t>& value) {
    return value ? fmt::format("{}", *value) : std::string{};
  };
  std::string names =
      "tid,state,log_block,commit_time_ns,interval_ns,blocks,blocks_logged,bytes,revokes";
  for (std::size_t i = 0; i < kBlockKindCount; ++i) {
    names += fmt::format(",{}", to_string(static_cast<BlockKind>(i)));
  }
  sink(names + "\n");
  for (const CommitRow& row : report.commits) {
    std::string line = fmt::format(
        "{},{},{},{},{},{},{},{},{}", row.tid.value(), to_string(row.state), row.log_block.value(),
        or_nothing(row.commit_time_ns), or_nothing(row.interval_ns), row.blocks, row.blocks_logged,
        row.blocks_logged * report.block_size, row.revokes);
    for (const std::uint64_t count : row.by_kind) line += fmt::format(",{}", count);
    sink(line + "\n");
  }
}

}  // namespace jbdlab::analyze
