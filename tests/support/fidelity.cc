#include "tests/support/fidelity.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "tests/support/files.h"

namespace jbdlab::test {
namespace {

using nlohmann::json;

constexpr std::array kCore = std::to_array<std::string_view>({
    "full_commits",
    "tx_blocks",
    "tx_blocks_logged",
    "fsync_calls",
    "fdatasync_calls",
    "fc_status_0",
    "fc_status_1",
    "fc_status_2",
    "fc_status_3",
    "fc_blocks",
    "bio_preflush_writes",
    "bio_fua_writes",
    "bio_flush_only",
    "rq_flush_completed",
    "sectors.journal_log",
    "sectors.journal_fc",
    "sectors.data",
});

constexpr std::array kMore = std::to_array<std::string_view>({
    "tx_handles",
    "handles_stopped",
    "handles_requested_blocks",
    "handles_dirtied_blocks",
    "bio_writes",
    "bio_write_sectors",
    "checkpoint_transactions",
    "checkpoint_written",
    "journal_super_writes",
    "log_tail_updates",
    "sectors.journal_super",
    "sectors.super",
    "sectors.gdt",
    "sectors.block_bitmap",
    "sectors.inode_bitmap",
    "sectors.inode_table",
    "sectors.fs_meta_other",
});

// A list of [value..., times] rows; only the last `width` values of a row are compared.
struct ListKey {
  std::string_view key;
  std::size_t width;
};
constexpr std::array kLists = std::to_array<ListKey>({
    {"transactions_rle", 2},  // blocks and blocks logged; handles are not core
    {"fc_results_rle", 1},
});

// Null where a part of the dotted `key` is missing.
json find(const json& phase, std::string_view key) {
  const json* at = &phase;
  while (!key.empty()) {
    const auto dot = key.find('.');
    const std::string part{key.substr(0, dot)};
    if (!at->is_object() || !at->contains(part)) {
      return nullptr;
    }
    at = &(*at)[part];
    key.remove_prefix(dot == std::string_view::npos ? key.size() : dot + 1);
  }
  return *at;
}

double number(const json& value) { return value.is_number() ? value.get<double>() : 0.0; }

bool is_zero(const json& value) {
  return value.is_null() || (value.is_number() && number(value) == 0.0);
}

double slack_for(bool in_run, bool core, std::string_view key, const json& want,
                 bool script_ends_in_sync) {
  if ((key == "bio_flush_only" || key == "rq_flush_completed") && script_ends_in_sync) {
    return 1;
  }
  if (in_run && core) {
    return 0;
  }
  const double base = want.is_array() ? number(want.back()) : number(want);
  return in_run ? std::max(2.0, 0.01 * base) : std::max(3.0, 0.05 * base);
}

bool holds(const json& want, double got, double slack) {
  if (want.is_array() && !want.empty()) {
    const double low = number(want.front());
    const double high = number(want.back());
    slack = std::max({2.0, 0.1 * high, slack});
    return low - slack <= got && got <= high + slack;
  }
  return std::abs(number(want) - got) <= slack;
}

std::vector<std::vector<std::int64_t>> expand(const json& list, std::size_t width) {
  std::vector<std::vector<std::int64_t>> rows;
  if (!list.is_array()) {
    return rows;
  }
  for (const auto& row : list) {
    if (!row.is_array() || row.size() < width + 1) {
      return {{-1}};  // equals no recorded list
    }
    std::vector<std::int64_t> values;
    for (std::size_t i = row.size() - 1 - width; i < row.size() - 1; ++i) {
      values.push_back(row[i].get<std::int64_t>());
    }
    rows.insert(rows.end(), row.back().get<std::size_t>(), values);
  }
  return rows;
}

std::string shown(const json& value) { return value.is_null() ? "missing" : value.dump(); }

bool varies(const json& recording, const std::string& key) {
  const auto& varying = recording.at("varying");
  return std::find(varying.begin(), varying.end(), key) != varying.end();
}

void compare_lists(const json& recording, const json& want, const json& got,
                   std::vector<Compared>& rows) {
  for (const auto& list : kLists) {
    const json kernel = find(want, list.key);
    const json simulated = find(got, list.key);
    if ((kernel.empty() && simulated.empty()) ||
        varies(recording, fmt::format("phases.run.{}", list.key))) {
      continue;
    }
    rows.push_back({"run", std::string{list.key}, shown(kernel), shown(simulated),
                    expand(kernel, list.width) == expand(simulated, list.width)});
  }
}

}  // namespace

std::vector<Compared> compare(const json& recording, const json& report, bool ends_in_sync,
                              Keys keys) {
  std::vector<Compared> rows;
  std::vector<std::string> phases{"run"};
  if (keys == Keys::all) {
    for (const char* name : {"setup", "umount"}) {
      if (recording.at("phases").contains(name)) {
        phases.emplace_back(name);
      }
    }
  }
  const json& report_phases = report.at("phases");
  for (const auto& phase : phases) {
    const bool in_run = phase == "run";
    const json& want = recording.at("phases").at(phase);
    const json got = report_phases.value(phase, json::object());
    const auto compare_key = [&](std::string_view key, bool core) {
      const json kernel = find(want, key);
      const json simulated = find(got, key);
      const bool missing = core && in_run && simulated.is_null();
      if (!missing && is_zero(kernel) && is_zero(simulated)) {
        return;
      }
      const double slack = slack_for(in_run, core, key, kernel, ends_in_sync);
      rows.push_back({phase, std::string{key}, kernel.is_null() ? "0" : shown(kernel),
                      shown(simulated), !missing && holds(kernel, number(simulated), slack)});
    };
    for (const auto key : kCore) {
      compare_key(key, true);
    }
    if (keys == Keys::all) {
      for (const auto key : kMore) {
        compare_key(key, false);
      }
    }
    if (in_run) {
      compare_lists(recording, want, got, rows);
    }
  }
  return rows;
}

bool ends_in_sync(std::string_view script) {
  std::string last;
  for (const auto& line : lines_of(script)) {
    const auto words = words_of(line);
    if (!words.empty() && words.front().front() != '#') {
      last = words.back();
    }
  }
  return last == "sync" || last == "syncfs";
}

std::vector<std::string> run_arguments(const json& recording, const std::string& script) {
  const json& config = recording.at("config");
  const auto mount = config.at("mount").get<std::string>();
  return {"run",      script,
          "--json",   "--no-progress",
          "--device", config.at("backing") == "tmpfs" ? "ram" : "loop-file",
          "--size",   fmt::format("{}M", config.at("image_mib").get<std::int64_t>()),
          "--mkfs",   config.at("mkfs").get<std::string>(),
          "--mount",  mount.empty() ? "defaults" : mount,
          "--cpus",   "2"};
}

}  // namespace jbdlab::test
