#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "sim/counters.h"
#include "workloads/counters.h"
#include "workloads/histogram.h"
#include "workloads/op.h"

// What a run has to tell: a value. Two printers of it stand below; both give the same bytes for the
// same report, on every machine.
namespace jbdlab::workloads {

// A parameter with its value, in a list whose order means nothing but is kept. The unit is the last
// word of the name ("flush_ns").
struct NamedValue {
  std::string name;
  std::variant<bool, std::uint64_t, std::string> value;
  friend bool operator==(const NamedValue&, const NamedValue&) = default;
};

// Every input that could change a number of the report. Options are as the user gave them.
struct Provenance {
  std::string version;     // of jbdlab: base/build_info.h
  std::string build_type;  // likewise
  std::string compiler;    // likewise
  std::string workload;    // name of the script (no folder), or of the generator
  std::vector<NamedValue> workload_parameters;  // of a generator
  std::string workload_digest;                  // text_digest() of the script
  std::string mkfs_options;
  std::string mount_options;
  std::string image;  // name of the image that the run started from (no folder); "" for mke2fs
  std::string image_digest;  // of its contents; "" for mke2fs
  std::uint64_t image_size_bytes = 0;
  std::string device;
  std::vector<NamedValue> device_parameters;  // all of them, defaults too
  std::string kernel;                         // profile
  std::vector<NamedValue> settings;           // --set
  std::uint32_t cpus = 1;
  std::uint64_t seed = 0;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// The file system that came out of the options, under the names of the recordings' `config`.
struct RunConfig {
  std::string mount_effective;
  std::vector<std::string> features;
  std::uint32_t block_size = 0;         // bytes
  std::uint32_t journal_blocks = 0;     // all, the fast-commit area too
  std::uint32_t journal_fc_blocks = 0;  // of those
  std::uint32_t threads = 0;            // that the script names
};

struct PhaseReport {
  std::string name;
  PhaseCounters counters{};
  Duration elapsed{};  // simulated, over all its parts if the name came back
};

// The operation that failed and so ended the run.
struct OpFailure {
  std::uint32_t line = 0;
  std::string operation;  // print_op()
  std::string what;       // why, in a sentence
};

struct Report {
  Provenance provenance;
  RunConfig config;
  std::vector<PhaseReport> phases;               // in the order in which they began
  Duration elapsed{};                            // simulated, from before mount to after unmount
  sim::EnumArray<OpKind, Histogram> latency_ns;  // of the operations of phase `run`
  std::optional<OpFailure> failure;

  // The phase of that name; begins it if it is new. Valid until another phase begins.
  PhaseReport& phase(std::string_view name);
  const PhaseReport* find_phase(std::string_view name) const;  // null if there is none
};

// Rates of phase `run`, per 1000 seconds, so that they are integers with three decimals per second;
// 0 if no time passed.
struct Throughput {
  std::uint64_t ops_per_ks = 0;
  std::uint64_t fsyncs_per_ks = 0;   // fsync and fdatasync calls
  std::uint64_t commits_per_ks = 0;  // full commits
  std::uint64_t fast_commits_per_ks = 0;
  std::uint64_t bytes_written_per_ks = 0;  // by the operations
  std::uint64_t bytes_read_per_ks = 0;
};
Throughput throughput(const Report& report);

// "fnv1a64:0123456789abcdef": tells whether two scripts are the same text. No protection against
// somebody who wants them to seem so.
std::string text_digest(std::string_view text);

// The document of `jbdlab run --json`: cli.md, "Simulating". Schema "jbdlab.run/1". A path in
// `failure` may hold bytes that are not UTF-8: dump() it with error_handler_t::replace.
nlohmann::ordered_json to_json(const Report& report);

// For people: provenance, the main counters of each phase as a table, latencies. Lines of at most
// 100 columns, each with its LF.
std::string to_text(const Report& report);

}  // namespace jbdlab::workloads
