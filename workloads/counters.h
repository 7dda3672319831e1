#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/counters.h"
#include "workloads/op.h"

namespace jbdlab::workloads {

// What is counted in one phase of a run: what the script asked for, and what the machine did.
struct PhaseCounters {
  sim::EnumArray<OpKind> ops{};     // operations of the script; barrier and mark are none
  std::uint64_t bytes_written = 0;  // by write, writemagic and append; no counter of a recording
  std::uint64_t bytes_read = 0;     // by read, as asked for; no counter of a recording
  sim::SimCounters sim{};

  std::uint64_t ops_total() const;
  // Appends what was counted later than *this.
  PhaseCounters& operator+=(const PhaseCounters& later);
  friend bool operator==(const PhaseCounters&, const PhaseCounters&) = default;
};

// Every counter of groundtruth/README.md "Counters of a phase", under its name and also when it is
// 0, in an order that never changes.
nlohmann::ordered_json to_json(const PhaseCounters& counters);

// [[handles, blocks, blocks_logged, times], ...]: neighbours that are equal in these three merged.
nlohmann::ordered_json transactions_rle(std::span<const sim::TransactionRecord> transactions);
// [[n, times], ...]: n > 0 blocks of a fast commit, or minus its status.
nlohmann::ordered_json fc_results_rle(std::span<const std::int32_t> results);

}  // namespace jbdlab::workloads
