#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "analyze/stats_print.h"
#include "analyze/text_style.h"

namespace jbdlab::analyze {
namespace {

constexpr std::size_t kLabelWidth = 16;
constexpr std::size_t kValueColumn = 2 + kLabelWidth + 1;

std::string row(std::string_view label, std::string_view value) {
  return fmt::format("  {:<{}} {}\n", label, kLabelWidth, fill(value, kValueColumn, kValueColumn));
}

// "1 block", "2 blocks".
std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// Tenths of a percent, rounded down; nothing of nothing is 0.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t tenths = whole == 0 ? 0 : part * 1000 / whole;
  return fmt::format("{}.{} %", tenths / 10, tenths % 10);
}

// "1.204 s": three digits behind the point, of the largest unit that leaves one before it.
std::string duration_text(std::uint64_t ns) {
  struct Unit {
    std::uint64_t ns;
    std::string_view name;
  };
  for (const Unit& unit : {Unit{1'000'000'000, "s"}, Unit{1'000'000, "ms"}, Unit{1'000, "us"}}) {
    if (ns < unit.ns) continue;
    return fmt::format("{}.{:03} {}", ns / unit.ns, ns % unit.ns / (unit.ns / 1000), unit.name);
  }
  return fmt::format("{} ns", ns);
}

std::string count_text(std::uint64_t value) { return fmt::format("{}", value); }

std::string tags_text(const std::vector<std::uint64_t>& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i],
                        jbd2::to_string(static_cast<jbd2::FcTag>(i)));
  }
  return text;
}

std::string fill_text(const Fill& fill) {
  return fmt::format("{} of {} used ({})", fill.used, counted(fill.blocks, "block"),
                     percent(fill.used, fill.blocks));
}

std::string totals_text(const StatsReport& report, const Paint& paint) {
  std::string text = paint.bold("Totals") + "\n";
  text += row("Transactions",
              fmt::format("{} with {} of blocks", report.transactions,
                          report.blocks == 1 ? "1 copy" : fmt::format("{} copies", report.blocks)));
  text += row("Written to ring", fmt::format("{} with descriptors, revoke and commit blocks ({})",
                                             counted(report.blocks_logged, "block"),
                                             size_text(report.blocks_logged * report.block_size)));
  text += row("Revokes", count_text(report.revokes));
  text += row("Fast commits",
              report.fast_commits == 0
                  ? std::string{"0"}
                  : fmt::format("{} in {} ({}): {}", report.fast_commits,
                                counted(report.fast_commit_blocks, "block"),
                                size_text(report.fast_commit_blocks * report.block_size),
                                tags_text(report.fast_commit_tags)));
  if (report.transactions_left_out + report.fast_commits_left_out != 0) {
    text += row("Not counted", fmt::format("{} and {}, incomplete or corrupt",
                                           counted(report.transactions_left_out, "transaction"),
                                           counted(report.fast_commits_left_out, "fast commit")));
  }
  text += row("Ring", fill_text(report.ring));
  if (report.fast_commit_area.blocks != 0) {
    text += row("Fast-commit area", fill_text(report.fast_commit_area));
  }
  return text;
}

std::string kinds_text(const StatsReport& report, const Paint& paint) {
  if (report.blocks == 0) return {};
  std::string text = "\n" + paint.bold("Kinds of blocks") + "\n";
  text += paint.dim(fmt::format("  {:<14} {:>10} {:>9} {:>18} {:>12}\n", "kind", "copies", "share",
                                "different blocks", "copies each"));
  for (std::size_t i = 0; i < kBlockKindCount; ++i) {
    if (report.by_kind[i] == 0) continue;
    const std::uint64_t distinct = report.distinct_by_kind[i];
    text +=
        fmt::format("  {:<14} {:>10} {:>9} {:>18} {:>12}\n", to_string(static_cast<BlockKind>(i)),
                    report.by_kind[i], percent(report.by_kind[i], report.blocks), distinct,
                    distinct == 0 ? std::string{"-"}
                                  : fmt::format("{:.1f}", static_cast<double>(report.by_kind[i]) /
                                                              static_cast<double>(distinct)));
  }
  return text;
}

std::string distributions_text(const StatsReport& report, const Paint& paint) {
  struct Line {
    std::string_view label;
    const Distribution* values;
    std::string (*text)(std::uint64_t);
  };
  std::string lines;
  for (const Line& line :
       {Line{"blocks of a commit", &report.blocks_per_commit, count_text},
        Line{"written to the ring", &report.bytes_per_commit, size_text},
        Line{"since the commit before", &report.commit_interval_ns, duration_text},
        Line{"copies of a block", &report.times_logged, count_text},
        Line{"blocks of a fast commit", &report.blocks_per_fast_commit, count_text}}) {
    const Distribution& d = *line.values;
    if (d.count == 0) continue;
    lines += fmt::format("  {:<23} {:>8} {:>11} {:>11} {:>11} {:>11} {:>11}\n", line.label, d.count,
                         line.text(d.min), line.text(d.p50), line.text(d.p90), line.text(d.p99),
                         line.text(d.max));
  }
  if (lines.empty()) return {};
  return "\n" + paint.bold("Distributions") + "\n" +
         paint.dim(fmt::format("  {:<23} {:>8} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "", "count",
                               "least", "median", "90 %", "99 %", "most")) +
         lines;
}

std::string rewrites_text(const StatsReport& report, const Paint& paint) {
  const auto amplification = report.write_amplification();
  if (!amplification) return {};
  std::string text = "\n" + paint.bold("Write amplification") + "\n";
  const std::string sentence = fmt::format(
      "{:.2f}: {} in the ring for {} that {} home, if a checkpoint writes each once, after the "
      "last "
      "commit.",
      *amplification, counted(report.blocks_logged, "block"), report.home_blocks,
      report.home_blocks == 1 ? "goes" : "go");
  text += fmt::format("  {}\n", fill(sentence, 2, 2));
  for (const HotBlock& block : report.hottest) {
    text += fmt::format("  block {:>12}  {:<13} {:>8} times\n", block.fs_block.value(),
                        to_string(block.kind), block.times_logged);
  }
  return text;
}

std::string rate_text(const StatsReport& report, const Paint& paint) {
  const CommitRate& rate = report.rate;
  if (!rate.first_ns) return {};
  std::string text = "\n" + paint.bold("Commits over time") + "\n";
  text += row("From", time_text(*rate.first_ns));
  text +=
      row("To", fmt::format("{} ({})", time_text(*rate.last_ns), duration_text(rate.span_ns())));
  if (rate.times_set_back != 0) {
    text += row("Clock", fmt::format("went back {}", counted(rate.times_set_back, "time")));
  }
  if (rate.slices.size() < 2) return text;
  constexpr std::uint64_t kBarWidth = 40;
  const std::uint64_t most =
      std::max_element(rate.slices.begin(), rate.slices.end(), [](const auto& a, const auto& b) {
        return a.blocks_logged < b.blocks_logged;
      })->blocks_logged;
  text += paint.dim(
      fmt::format("  {:>12} {:>12} {:>14}  {}\n", "begins at", "commits", "to the ring", "blocks"));
  for (const CommitRate::Slice& slice : rate.slices) {
    const std::uint64_t bar = most == 0 ? 0 : (slice.blocks_logged * kBarWidth + most - 1) / most;
    text +=
        fmt::format("  {:>12} {:>12} {:>14}", "+" + duration_text(slice.begin_ns - *rate.first_ns),
                    slice.transactions, size_text(slice.blocks_logged * report.block_size));
    if (bar != 0) text += "  " + std::string(bar, '#');
    text += '\n';
  }
  return text;
}

}  // namespace

void write_stats_text(const StatsReport& report, std::string_view image, TextOptions options,
                      const Sink& sink) {
  const Paint paint{options.color};
  sink(fmt::format("{}\n\n", image));
  sink(totals_text(report, paint));
  sink(kinds_text(report, paint));
  sink(distributions_text(report, paint));
  sink(rewrites_text(report, paint));
  sink(rate_text(report, paint));
  sink(findings_text(report.findings, paint));
}

}  // namespace jbdlab::analyze
