#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "workloads/report.h"
#include "workloads/units.h"

namespace jbdlab::workloads {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kLabelWidth = 14;  // of the lines above the table

std::string plural(std::uint64_t n, std::string_view one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

// "label         text", continued below itself where it does not fit: broken at blanks, and inside
// a word only when the word is longer than a line.
void append_labelled(std::string& out, std::string_view label, std::string_view text) {
  constexpr std::size_t kWidth = kColumns - kLabelWidth;
  do {
    std::size_t end = text.size();
    if (end > kWidth) {
      end = text.rfind(' ', kWidth);
      if (end == text.npos || end == 0) end = kWidth;
    }
    out += fmt::format("{:<{}}{}\n", label, kLabelWidth, text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
    label = "";
  } while (!text.empty());
}

std::string listed(const std::vector<NamedValue>& values) {
  struct Print {
    std::string operator()(bool value) const { return value ? "yes" : "no"; }
    std::string operator()(std::uint64_t value) const { return fmt::format("{}", value); }
    std::string operator()(const std::string& value) const { return value; }
  };
  std::string out;
  for (const NamedValue& v : values)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", v.name, std::visit(Print{}, v.value));
  return out;
}

void append_provenance(std::string& out, const Report& report) {
  const Provenance& p = report.provenance;
  const RunConfig& c = report.config;
  const auto with = [](const std::string& text, const std::string& more) {
    return more.empty() ? text : text + " " + more;
  };
  append_labelled(out, "jbdlab", fmt::format("{} ({}, {})", p.version, p.build_type, p.compiler));
  append_labelled(
      out, "workload",
      with(fmt::format("{}, {}, {}", p.workload, plural(c.threads, "thread"), p.workload_digest),
           listed(p.workload_parameters)));
  append_labelled(
      out, "file system",
      fmt::format(
          "{}, {}-byte blocks, {}", format_bytes(p.image_size_bytes), c.block_size,
          p.image.empty()
              ? fmt::format("mke2fs {}", p.mkfs_options.empty() ? "(defaults)" : p.mkfs_options)
              : fmt::format("from {} {}", p.image, p.image_digest)));
  append_labelled(out, "mount", p.mount_options.empty() ? "(defaults)" : p.mount_options);
  append_labelled(out, "journal",
                  fmt::format("{}, {} of them for fast commits", plural(c.journal_blocks, "block"),
                              c.journal_fc_blocks));
  append_labelled(out, "device", with(p.device, listed(p.device_parameters)));
  append_labelled(out, "kernel",
                  with(fmt::format("{}, {}, seed {}", p.kernel, plural(p.cpus, "cpu"), p.seed),
                       listed(p.settings)));
}

// The rows of the table of phases.

using Number = std::uint64_t (*)(const PhaseReport&);
using Format = std::string (*)(std::uint64_t);

struct Row {
  std::string_view label;
  Number number;
  Format format;
};

std::string format_count(std::uint64_t n) { return fmt::format("{}", n); }
std::string format_sectors(std::uint64_t n) { return format_bytes(n * 512); }

template <std::uint64_t sim::CounterTotals::* Member>
std::uint64_t total(const PhaseReport& p) {
  return p.counters.sim.*Member;
}
template <sim::FcStatus Status>
std::uint64_t fc_status(const PhaseReport& p) {
  return p.counters.sim.fc_status[Status];
}
template <sim::SectorClass... Class>
std::uint64_t sectors(const PhaseReport& p) {
  return (... + p.counters.sim.sectors[Class]);
}

constexpr auto kRows = [] {
  using enum sim::SectorClass;
  using T = sim::CounterTotals;
  return std::to_array<Row>({
      {"simulated time",
       [](const PhaseReport& p) { return static_cast<std::uint64_t>(p.elapsed.count()); },
       format_duration_ns},
      {"operations", [](const PhaseReport& p) { return p.counters.ops_total(); }, format_count},
      {"bytes written by operations", [](const PhaseReport& p) { return p.counters.bytes_written; },
       format_bytes},
      {"fsync calls", total<&T::fsync_calls>, format_count},
      {"fdatasync calls", total<&T::fdatasync_calls>, format_count},
      {"", nullptr, nullptr},
      {"handles", total<&T::handles_stopped>, format_count},
      {"full commits", total<&T::full_commits>, format_count},
      {"  metadata blocks in them", total<&T::tx_blocks>, format_count},
      {"  log blocks they took", total<&T::tx_blocks_logged>, format_count},
      {"fast commits", fc_status<sim::FcStatus::ok>, format_count},
      {"  blocks they took", total<&T::fc_blocks>, format_count},
      {"  ineligible, full instead", fc_status<sim::FcStatus::ineligible>, format_count},
      {"  skipped, nothing to do", fc_status<sim::FcStatus::skipped>, format_count},
      {"  failed, full instead", fc_status<sim::FcStatus::failed>, format_count},
      {"checkpointed transactions", total<&T::checkpoint_transactions>, format_count},
      {"  buffers written for that", total<&T::checkpoint_written>, format_count},
      {"log tail updates", total<&T::log_tail_updates>, format_count},
      {"journal superblock writes", total<&T::journal_super_writes>, format_count},
      {"", nullptr, nullptr},
      {"write requests", total<&T::bio_writes>, format_count},
      {"  after a flush (PREFLUSH)", total<&T::bio_preflush_writes>, format_count},
      {"  forced to the medium (FUA)", total<&T::bio_fua_writes>, format_count},
      {"flush requests without data", total<&T::bio_flush_only>, format_count},
      {"flushes done by the device", total<&T::rq_flush_completed>, format_count},
      {"read", total<&T::bio_read_sectors>, format_sectors},
      {"written", total<&T::bio_write_sectors>, format_sectors},
      {"  file data", sectors<data>, format_sectors},
      {"  journal log", sectors<journal_log>, format_sectors},
      {"  fast-commit area", sectors<journal_fc>, format_sectors},
      {"  journal superblock", sectors<journal_super>, format_sectors},
      {"  super, group descriptors", sectors<super, gdt>, format_sectors},
      {"  bitmaps", sectors<block_bitmap, inode_bitmap>, format_sectors},
      {"  inode tables", sectors<inode_table>, format_sectors},
      {"  other metadata", sectors<fs_meta_other>, format_sectors},
  });
}();

constexpr std::size_t kRowLabelWidth = 30;
constexpr std::size_t kCellWidth = 14;  // with the gap before it
constexpr std::size_t kPhasesPerTable = (kColumns - kRowLabelWidth) / kCellWidth;

// A name cut to its cell.
std::string heading(std::string_view name) {
  if (name.size() < kCellWidth) return std::string(name);
  return fmt::format("{}~", name.substr(0, kCellWidth - 2));
}

void append_table(std::string& out, std::span<const PhaseReport> phases) {
  out += fmt::format("\n{:<{}}", "phase", kRowLabelWidth);
  for (const PhaseReport& phase : phases)
    out += fmt::format("{:>{}}", heading(phase.name), kCellWidth);
  out += '\n';
  for (const Row& row : kRows) {
    if (row.number != nullptr) {
      out += fmt::format("{:<{}}", row.label, kRowLabelWidth);
      for (const PhaseReport& phase : phases) {
        const std::uint64_t n = row.number(phase);
        out += fmt::format("{:>{}}", n == 0 ? "-" : row.format(n), kCellWidth);
      }
    }
    out += '\n';
  }
}

void append_throughput(std::string& out, const Report& report) {
  const Throughput t = throughput(report);
  append_labelled(
      out, "throughput",
      fmt::format("{} ops/s, {} fsyncs/s, {} full and {} fast commits/s, {}/s written "
                  "by operations",
                  format_thousandths(t.ops_per_ks), format_thousandths(t.fsyncs_per_ks),
                  format_thousandths(t.commits_per_ks), format_thousandths(t.fast_commits_per_ks),
                  format_bytes(t.bytes_written_per_ks / 1000)));
}

void append_latencies(std::string& out, const Report& report) {
  bool first = true;
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    const Histogram& h = report.latency_ns[static_cast<OpKind>(i)];
    if (h.count() == 0) continue;
    if (first)
      out += fmt::format("\n{:<16}{:>12}{:>14}{:>14}{:>14}{:>14}{:>14}\n", "latency", "count",
                         "p50", "p95", "p99", "p99.9", "max");
    first = false;
    out += fmt::format("{:<16}{:>12}{:>14}{:>14}{:>14}{:>14}{:>14}\n", kOpGrammar[i].name,
                       h.count(), format_duration_ns(h.at_per_mille(500)),
                       format_duration_ns(h.at_per_mille(950)),
                       format_duration_ns(h.at_per_mille(990)),
                       format_duration_ns(h.at_per_mille(999)), format_duration_ns(h.max()));
  }
}

}  // namespace

std::string to_text(const Report& report) {
  std::string out;
  append_provenance(out, report);
  const std::span<const PhaseReport> phases = report.phases;
  for (std::size_t first = 0; first < phases.size(); first += kPhasesPerTable)
    append_table(out, phases.subspan(first, std::min(kPhasesPerTable, phases.size() - first)));
  out += '\n';
  append_labelled(out, "total time",
                  format_duration_ns(static_cast<std::uint64_t>(report.elapsed.count())));
  append_throughput(out, report);
  append_latencies(out, report);
  if (report.failure) {
    out += '\n';
    append_labelled(out, "failed",
                    fmt::format("line {}: {}: {}", report.failure->line, report.failure->operation,
                                report.failure->what));
  }
  return out;
}

}  // namespace jbdlab::workloads
