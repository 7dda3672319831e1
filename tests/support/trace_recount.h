#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sim/counters.h"
#include "sim/trace.h"

// Counts the events of a trace as groundtruth/summarize.awk counts those of the kernel, from the
// text alone: an independent witness of the counters of the same run.
namespace jbdlab::test {

class TraceRecount {
 public:
  // For the classes of sectors; "everything elsewhere" by default.
  TraceRecount() = default;
  explicit TraceRecount(sim::SectorClassifier classifier) : classifier_(std::move(classifier)) {}

  struct Op {
    std::string verb;
    std::uint32_t thread;
  };

  sim::SimCounters counters;  // since the last take()
  std::vector<std::string> phases;
  std::vector<Op> ops;
  std::vector<std::string> unknown;  // lines that are no event of ours

  void line(std::string_view text) {
    words_ = split(text);
    if (words_.size() < 2) {
      unknown.emplace_back(text);
      return;
    }
    if (!count(words_[1])) unknown.emplace_back(text);
  }

 private:
  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
      const std::size_t end = text.find(' ');
      if (end != 0) words.emplace_back(text.substr(0, end));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    return words;
  }
  // The number behind the word `name`, with or without a comma.
  std::int64_t field(std::string_view name) const {
    for (std::size_t i = 1; i + 1 < words_.size(); ++i) {
      if (words_[i] == name) return std::strtoll(words_[i + 1].c_str(), nullptr, 10);
    }
    return 0;
  }
  std::uint64_t count_of(std::string_view name) const {
    return static_cast<std::uint64_t>(field(name));
  }
  std::uint64_t number(std::size_t word) const {
    return word < words_.size() ? std::strtoull(words_[word].c_str(), nullptr, 10) : 0;
  }

  bool count(std::string_view event) {
    sim::SimCounters& c = counters;
    if (event == "phase") {
      phases.push_back(words_.back());
    } else if (event == "op") {
      ops.push_back({words_[2], static_cast<std::uint32_t>(field("thread"))});
    } else if (event == "ext4_sync_file_enter") {
      ++(field("datasync") != 0 ? c.fdatasync_calls : c.fsync_calls);
    } else if (event == "ext4_sync_fs") {
      ++c.sync_fs_calls;
    } else if (event == "ext4_journal_start_sb" || event == "ext4_journal_start_inode") {
      ++c.journal_starts[static_cast<sim::HandleType>(field("type"))];
    } else if (event == "ext4_journal_start_reserved") {
      ++c.journal_starts[sim::HandleType::reserved];
    } else if (event == "jbd2_handle_stats") {
      c.add_stopped_handle(count_of("requested_blocks"), field("dirtied_blocks"));
    } else if (event == "jbd2_start_commit") {
    } else if (event == "jbd2_run_stats") {
      const auto u32 = [&](std::string_view name) {
        return static_cast<std::uint32_t>(field(name));
      };
      c.add_transaction({.tid = Tid{u32("tid")},
                         .handles = u32("handle_count"),
                         .blocks = u32("blocks"),
                         .blocks_logged = u32("blocks_logged")});
    } else if (event == "jbd2_end_commit") {
      c.sync_commits += count_of("sync");
    } else if (event == "jbd2_checkpoint") {
      ++c.checkpoint_calls;
    } else if (event == "jbd2_checkpoint_stats") {
      ++c.checkpoint_transactions;
      c.checkpoint_forced += count_of("forced_to_close");
      c.checkpoint_written += count_of("written");
      c.checkpoint_dropped += count_of("dropped");
    } else if (event == "jbd2_update_log_tail") {
      ++c.log_tail_updates;
    } else if (event == "jbd2_write_superblock") {
      ++c.journal_super_writes;
    } else {
      return count_fast_commit(event) || count_block(event);
    }
    return true;
  }

  bool count_fast_commit(std::string_view event) {
    constexpr std::string_view kTrack = "ext4_fc_track_";
    if (event == "ext4_fc_commit_start") {
      ++counters.fc_commit_starts;
    } else if (event == "ext4_fc_commit_stop") {
      counters.add_fc_result(static_cast<sim::FcStatus>(field("reason")),
                             static_cast<std::uint32_t>(field("nblks")));
    } else if (event == "ext4_fc_cleanup") {
      ++(field("full") != 0 ? counters.fc_cleanup_full : counters.fc_cleanup_fast);
    } else if (event.starts_with(kTrack)) {
      const std::int64_t error = field("error");
      auto& sums = error == 0 || error == -17 ? counters.fc_track : counters.fc_track_refused;
      for (std::size_t i = 0; i < sim::kFcTrackNames.size(); ++i) {
        if (event.substr(kTrack.size()) == sim::kFcTrackNames[i]) {
          ++sums[static_cast<sim::FcTrack>(i)];
          return true;
        }
      }
      return false;
    } else {
      return false;
    }
    return true;
  }

  bool count_block(std::string_view event) {
    if (words_.size() < 3) return false;
    std::string_view letters = words_[2];
    sim::SimCounters& c = counters;
    if (event == "block_rq_issue") {
      if (letters.starts_with("FF")) {
        ++c.rq_flush_issued;
      } else if (letters.find('W') != std::string_view::npos) {
        ++c.rq_write_issued;
      }
      return true;
    }
    if (event == "block_rq_complete") {
      if (letters.starts_with("FF")) ++c.rq_flush_completed;
      return true;
    }
    if (event != "block_bio_queue") return false;
    const bool preflush = letters.starts_with("F");
    if (preflush) letters.remove_prefix(1);
    const std::uint64_t sector = number(3);
    const std::uint64_t sectors = number(5);
    switch (letters.empty() ? '?' : letters[0]) {
      case 'R':
        ++c.bio_reads;
        c.bio_read_sectors += sectors;
        return true;
      case 'D':
        ++c.bio_discards;
        return true;
      case 'W':
        break;
      default:
        return false;
    }
    if (sectors == 0) {
      ++c.bio_flush_only;
      return true;
    }
    ++c.bio_writes;
    c.bio_write_sectors += sectors;
    if (preflush) ++c.bio_preflush_writes;
    const std::string_view flags = letters.substr(1);
    if (flags.find('F') != std::string_view::npos) ++c.bio_fua_writes;
    const bool meta = flags.find('M') != std::string_view::npos;
    for (std::uint64_t s = sector; s < sector + sectors; ++s) {
      ++c.sectors[classifier_.classify(sim::Sector{s}, meta)];
    }
    return true;
  }

  sim::SectorClassifier classifier_;
  std::vector<std::string> words_;
};

}  // namespace jbdlab::test
