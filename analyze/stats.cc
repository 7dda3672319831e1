#include "analyze/stats.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace jbdlab::analyze {
namespace {

using jbd2::LogState;

constexpr std::size_t kFcTagCount = 10;  // FcTag is 1 to 9

std::size_t index_of(BlockKind kind) noexcept { return static_cast<std::size_t>(kind); }

bool counts(const jbd2::LogTransaction& transaction) {
  return transaction.state == LogState::replayable ||
         (transaction.state == LogState::stale && transaction.commit.has_value());
}

bool counts(const jbd2::LogFastCommit& commit) {
  return commit.state == LogState::replayable || commit.state == LogState::stale;
}

CommitRow row_of(const jbd2::LogTransaction& transaction, const std::vector<BlockKind>& kinds) {
  CommitRow row{.tid = transaction.tid,
                .log_block = transaction.first,
                .state = transaction.state,
                .commit_time_ns = {},
                .interval_ns = {},
                .blocks = transaction.blocks.size(),
                .blocks_logged = transaction.blocks.size() + transaction.control.size(),
                .revokes = transaction.revoked.size()};
  if (transaction.time) row.commit_time_ns = transaction.time->since_epoch_ns();
  for (const BlockKind kind : kinds) ++row.by_kind[index_of(kind)];
  return row;
}

// Interval of each commit from the one before it in time: the tid before it, of the same state. The
// stale transactions of a ring are of several lives of it, with gaps between.
void learn_intervals(std::vector<CommitRow>& commits, CommitRate& rate) {
  for (std::size_t i = 1; i < commits.size(); ++i) {
    const CommitRow& before = commits[i - 1];
    CommitRow& row = commits[i];
    if (before.tid.next() != row.tid || before.state != row.state) continue;
    if (!before.commit_time_ns || !row.commit_time_ns) continue;
    if (*row.commit_time_ns < *before.commit_time_ns) {
      ++rate.times_set_back;
    } else {
      row.interval_ns = *row.commit_time_ns - *before.commit_time_ns;
    }
  }
}

// The smallest of 10, 20, 50, 100, … ms of which kSlicesMax cover `span` and the instant at its
// end. The kernel takes commit times from its coarse clock, which ticks every 1 to 10 ms: shorter
// slices would show its ticks.
std::uint64_t slice_for(std::uint64_t span) {
  std::uint64_t power = 10'000'000;
  for (;;) {
    for (const std::uint64_t factor : {1U, 2U, 5U}) {
      const std::uint64_t width = factor * power;
      if (span / width < CommitRate::kSlicesMax) return width;
    }
    power *= 10;  // at 10^18 at the latest, as span < 2^64
  }
}

void learn_rate(const std::vector<CommitRow>& commits, CommitRate& rate) {
  for (const CommitRow& row : commits) {
    if (!row.commit_time_ns) continue;
    rate.first_ns = std::min(rate.first_ns.value_or(*row.commit_time_ns), *row.commit_time_ns);
    rate.last_ns = std::max(rate.last_ns.value_or(*row.commit_time_ns), *row.commit_time_ns);
  }
  if (!rate.first_ns) return;
  rate.slice_ns = slice_for(rate.span_ns());
  rate.slices.resize(rate.span_ns() / rate.slice_ns + 1);
  for (std::size_t i = 0; i < rate.slices.size(); ++i) {
    rate.slices[i].begin_ns = *rate.first_ns + i * rate.slice_ns;
  }
  for (const CommitRow& row : commits) {
    if (!row.commit_time_ns) continue;
    auto& slice = rate.slices[(*row.commit_time_ns - *rate.first_ns) / rate.slice_ns];
    ++slice.transactions;
    slice.blocks_logged += row.blocks_logged;
  }
}

struct Logged {
  FsBlock fs_block;
  Tid tid;
  BlockKind kind = BlockKind::unknown;
};

// The youngest revoke of each block, by number of the block.
std::vector<Logged> last_revokes(const LogReport& log) {
  std::vector<Logged> revokes;
  for (const jbd2::LogTransaction& transaction : log.contents.transactions) {
    if (!counts(transaction)) continue;
    for (const auto& block : transaction.revoked) {
      revokes.push_back({.fs_block = block.fs_block, .tid = transaction.tid});
    }
  }
  std::sort(revokes.begin(), revokes.end(), [](const Logged& a, const Logged& b) {
    return a.fs_block != b.fs_block ? a.fs_block < b.fs_block : a.tid.after(b.tid);
  });
  const auto same = [](const Logged& a, const Logged& b) { return a.fs_block == b.fs_block; };
  revokes.erase(std::unique(revokes.begin(), revokes.end(), same), revokes.end());
  return revokes;
}

bool is_revoked(const std::vector<Logged>& revokes, FsBlock block, Tid last_copy) {
  const auto at =
      std::lower_bound(revokes.begin(), revokes.end(), block,
                       [](const Logged& revoke, FsBlock b) { return revoke.fs_block < b; });
  return at != revokes.end() && at->fs_block == block && !last_copy.after(at->tid);
}

// How often each block was logged; its kind is that of its youngest copy.
void learn_rewrites(std::vector<Logged> logged, const std::vector<Logged>& revokes,
                    StatsReport& report) {
  std::stable_sort(logged.begin(), logged.end(),
                   [](const Logged& a, const Logged& b) { return a.fs_block < b.fs_block; });
  std::vector<std::uint64_t> times;
  std::vector<HotBlock> blocks;
  for (auto at = logged.begin(); at != logged.end();) {
    const auto end = std::find_if(
        at, logged.end(), [&](const Logged& copy) { return copy.fs_block != at->fs_block; });
    const auto youngest = std::max_element(
        at, end, [](const Logged& a, const Logged& b) { return b.tid.after(a.tid); });
    blocks.push_back({.fs_block = at->fs_block,
                      .kind = youngest->kind,
                      .times_logged = static_cast<std::uint64_t>(end - at)});
    if (!is_revoked(revokes, at->fs_block, youngest->tid)) ++report.home_blocks;
    at = end;
  }
  times.reserve(blocks.size());
  for (const HotBlock& block : blocks) {
    times.push_back(block.times_logged);
    ++report.distinct_by_kind[index_of(block.kind)];
  }
  report.distinct_blocks = blocks.size();
  report.times_logged = Distribution::of(std::move(times));
  std::erase_if(blocks, [](const HotBlock& block) { return block.times_logged < 2; });
  const std::size_t kept = std::min(blocks.size(), StatsReport::kHottestMax);
  std::partial_sort(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(kept),
                    blocks.end(), [](const HotBlock& a, const HotBlock& b) {
                      return a.times_logged != b.times_logged ? a.times_logged > b.times_logged
                                                              : a.fs_block < b.fs_block;
                    });
  blocks.resize(kept);
  report.hottest = std::move(blocks);
}

void learn_transactions(const LogReport& log, StatsReport& report) {
  std::vector<Logged> logged;
  for (std::size_t i = 0; i < log.contents.transactions.size(); ++i) {
    const jbd2::LogTransaction& transaction = log.contents.transactions[i];
    if (!counts(transaction)) {
      if (transaction.state != LogState::stale) ++report.transactions_left_out;
      continue;
    }
    const CommitRow& row = report.commits.emplace_back(row_of(transaction, log.kinds[i]));
    ++report.transactions;
    report.blocks += row.blocks;
    report.blocks_logged += row.blocks_logged;
    report.revokes += row.revokes;
    for (std::size_t kind = 0; kind < kBlockKindCount; ++kind) {
      report.by_kind[kind] += row.by_kind[kind];
    }
    for (std::size_t j = 0; j < transaction.blocks.size(); ++j) {
      logged.push_back({transaction.blocks[j].fs_block, transaction.tid, log.kinds[i][j]});
    }
  }
  learn_rewrites(std::move(logged), last_revokes(log), report);
}

void learn_fast_commits(const LogReport& log, StatsReport& report) {
  std::vector<std::uint64_t> sizes;
  report.fast_commit_tags.assign(kFcTagCount, 0);
  for (const jbd2::LogFastCommit& commit : log.contents.fast_commits) {
    if (!counts(commit)) {
      ++report.fast_commits_left_out;
      continue;
    }
    ++report.fast_commits;
    report.fast_commit_blocks += commit.blocks;
    if (commit.state == LogState::replayable) report.fast_commit_area.used += commit.blocks;
    sizes.push_back(commit.blocks);
    for (const auto& tag : commit.tags) {
      ++report.fast_commit_tags[static_cast<std::size_t>(tag.tag)];
    }
  }
  report.blocks_per_fast_commit = Distribution::of(std::move(sizes));
}

void learn_commits(StatsReport& report) {
  learn_intervals(report.commits, report.rate);
  learn_rate(report.commits, report.rate);
  std::vector<std::uint64_t> blocks, bytes, intervals;
  for (const CommitRow& row : report.commits) {
    blocks.push_back(row.blocks);
    bytes.push_back(row.blocks_logged * report.block_size);
    if (row.interval_ns) intervals.push_back(*row.interval_ns);
  }
  report.blocks_per_commit = Distribution::of(std::move(blocks));
  report.bytes_per_commit = Distribution::of(std::move(bytes));
  report.commit_interval_ns = Distribution::of(std::move(intervals));
}

Fill ring_of(const jbd2::LogContents& log) {
  const jbd2::Geometry& ring = log.geometry;
  Fill fill{.blocks = ring.count(), .used = 0};
  if (log.superblock.empty() || log.transactions.empty()) return fill;
  fill.used = ring.distance(log.superblock.start(), log.end_block);
  const bool goes_all_the_way_round = fill.used == 0 && log.transactions.front().before_end;
  if (goes_all_the_way_round) fill.used = fill.blocks;
  return fill;
}

}  // namespace

Distribution Distribution::of(std::vector<std::uint64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto rank = [&](std::size_t percent) {
    return values[(values.size() * percent + 99) / 100 - 1];
  };
  Distribution d{.count = values.size(),
                 .sum = 0,
                 .min = values.front(),
                 .p50 = rank(50),
                 .p90 = rank(90),
                 .p99 = rank(99),
                 .max = values.back()};
  for (const std::uint64_t value : values) {
    const bool fits = value <= std::numeric_limits<std::uint64_t>::max() - d.sum;
    d.sum = fits ? d.sum + value : std::numeric_limits<std::uint64_t>::max();
  }
  return d;
}

std::optional<double> StatsReport::write_amplification() const noexcept {
  if (home_blocks == 0) return std::nullopt;
  return static_cast<double>(blocks_logged) / static_cast<double>(home_blocks);
}

StatsReport stats_of(const LogReport& log) {
  StatsReport report;
  report.block_size = log.block_size;
  report.findings = log.findings;
  report.ring = ring_of(log.contents);
  report.fast_commit_area.blocks = log.contents.geometry.fast_commit_count();
  learn_transactions(log, report);
  learn_fast_commits(log, report);
  learn_commits(report);
  return report;
}

}  // namespace jbdlab::analyze
