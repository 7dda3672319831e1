#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/block_kind.h"
#include "analyze/log_report.h"
#include "base/ids.h"
#include "jbd2/finding.h"

namespace jbdlab::analyze {

// A few numbers that stand for many. Percentiles are of the nearest rank: each is a value that
// occurred.
struct Distribution {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  std::uint64_t min = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;

  // Takes the values, in any order. Their sum saturates.
  static Distribution of(std::vector<std::uint64_t> values);
  double mean() const noexcept {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  }
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

// One full commit that counts.
struct CommitRow {
  Tid tid;
  LogBlock log_block;
  jbd2::LogState state = jbd2::LogState::replayable;
  std::optional<std::uint64_t> commit_time_ns;
  std::optional<std::uint64_t> interval_ns;  // since the commit before it, if time went on
  std::uint64_t blocks = 0;                  // logged copies
  std::uint64_t blocks_logged = 0;           // and with descriptors, revoke blocks and commit block
  std::uint64_t revokes = 0;
  std::array<std::uint64_t, kBlockKindCount> by_kind{};
};

// How much of a part of the journal is in use.
struct Fill {
  std::uint32_t blocks = 0;
  std::uint32_t used = 0;
};

// A block that was logged more than once.
struct HotBlock {
  FsBlock fs_block;
  BlockKind kind = BlockKind::unknown;
  std::uint64_t times_logged = 0;
};

// Commits by commit time. The clock of a commit block is that of the wall: it may have been set
// back between two commits, which is counted and gives no interval.
struct CommitRate {
  std::optional<std::uint64_t> first_ns, last_ns;  // earliest and latest commit time
  std::uint64_t times_set_back = 0;
  // Equal slices of the time from `first_ns` to `last_ns`.
  struct Slice {
    std::uint64_t begin_ns = 0;
    std::uint64_t transactions = 0;
    std::uint64_t blocks_logged = 0;
  };
  std::uint64_t slice_ns = 0;  // 1, 2 or 5 times a power of ten, at least 10 ms
  std::vector<Slice> slices;   // at most kSlicesMax
  static constexpr std::size_t kSlicesMax = 20;

  std::uint64_t span_ns() const noexcept { return last_ns.value_or(0) - first_ns.value_or(0); }
};

// What a log adds up to. Counted is what recovery takes whole, and what LogOptions::all adds: older
// generations that still have a commit block. Handles leave no trace in a log and are not guessed.
struct StatsReport {
  std::uint32_t block_size = 0;

  std::uint64_t transactions = 0;
  std::uint64_t blocks = 0;         // logged copies of blocks
  std::uint64_t blocks_logged = 0;  // written to the ring: copies and control blocks
  std::uint64_t revokes = 0;
  std::uint64_t fast_commits = 0;
  std::uint64_t fast_commit_blocks = 0;
  std::uint64_t transactions_left_out = 0;  // incomplete or corrupt
  std::uint64_t fast_commits_left_out = 0;
  std::vector<std::uint64_t> fast_commit_tags;  // by FcTag; [0] is not used

  std::array<std::uint64_t, kBlockKindCount> by_kind{};           // adds up to `blocks`
  std::array<std::uint64_t, kBlockKindCount> distinct_by_kind{};  // adds up to `distinct_blocks`
  std::uint64_t distinct_blocks = 0;
  std::uint64_t home_blocks = 0;  // those of them whose youngest copy no revoke suppresses
  std::vector<HotBlock> hottest;  // most often logged first, then by number; at most kHottestMax
  static constexpr std::size_t kHottestMax = 10;

  Distribution blocks_per_commit;  // logged copies
  Distribution bytes_per_commit;   // written to the ring
  Distribution commit_interval_ns;
  Distribution times_logged;            // of each block that was
  Distribution blocks_per_fast_commit;  // of the area

  CommitRate rate;
  Fill ring;              // what recovery walks
  Fill fast_commit_area;  // what it takes

  std::vector<CommitRow> commits;  // in log order
  std::vector<jbd2::Finding> findings;

  // Blocks written to the ring for each of `home_blocks`: what the journal's copies cost if a
  // checkpoint writes every block once, at the end. Nothing if none goes home.
  std::optional<double> write_amplification() const noexcept;
};

StatsReport stats_of(const LogReport& log);

}  // namespace jbdlab::analyze
