#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/check.h"

namespace jbdlab::sim {
namespace {

std::int64_t milliseconds(Duration d) noexcept { return d / std::chrono::milliseconds(1); }

}  // namespace

SectorClassifier::SectorClassifier(std::uint32_t block_size, std::vector<Range> ranges) {
  CHECK(block_size % kSectorSize == 0);
  // Cuts the disk at every border; each new range replaces what it covers.
  std::map<std::uint64_t, Piece> pieces;  // by first sector, disjoint
  for (const Range& range : ranges) {
    const std::uint64_t first = sector_of(range.first, block_size).value();
    const std::uint64_t end = sector_of(range.end, block_size).value();
    if (first >= end) continue;
    auto at = pieces.lower_bound(first);
    if (at != pieces.begin() && std::prev(at)->second.end > first) --at;
    while (at != pieces.end() && at->second.first < end) {
      const Piece old = at->second;
      at = pieces.erase(at);
      if (old.first < first) pieces[old.first] = {old.first, first, old.sector_class};
      if (old.end > end) pieces[end] = {end, old.end, old.sector_class};
    }
    pieces[first] = {first, end, range.sector_class};
  }
  for (const auto& [first, piece] : pieces) {
    if (!pieces_.empty() && pieces_.back().end == first &&
        pieces_.back().sector_class == piece.sector_class) {
      pieces_.back().end = piece.end;
    } else {
      pieces_.push_back(piece);
    }
  }
}

std::size_t SectorClassifier::find(std::uint64_t sector) const noexcept {
  const auto holds = [&](std::size_t i) {
    return sector < pieces_[i].end && (i == 0 || pieces_[i - 1].end <= sector);
  };
  if (last_ < pieces_.size() && holds(last_)) return last_;
  const auto at = std::ranges::upper_bound(pieces_, sector, {}, &Piece::end);
  last_ = static_cast<std::size_t>(at - pieces_.begin());
  return last_;
}

SectorClass SectorClassifier::classify(Sector sector, bool meta) const noexcept {
  const std::size_t i = find(sector.value());
  if (i < pieces_.size() && pieces_[i].first <= sector.value()) return pieces_[i].sector_class;
  return meta ? SectorClass::fs_meta_other : SectorClass::data;
}

void SectorClassifier::count(Sector first, std::uint32_t count, bool meta,
                             EnumArray<SectorClass>& sums) const {
  const SectorClass elsewhere = meta ? SectorClass::fs_meta_other : SectorClass::data;
  std::uint64_t at = first.value();
  const std::uint64_t end = at + count;
  for (std::size_t i = find(at); at < end; ++i) {
    const std::uint64_t gap_end = i < pieces_.size() ? std::min(end, pieces_[i].first) : end;
    if (at < gap_end) {
      sums[elsewhere] += gap_end - at;
      at = gap_end;
    }
    if (at >= end) break;
    const std::uint64_t piece_end = std::min(end, pieces_[i].end);
    sums[pieces_[i].sector_class] += piece_end - at;
    at = piece_end;
  }
}

std::string rwbs(IoOp op, const BioFlags& flags) {
  std::string letters;
  if (flags.preflush) letters += 'F';
  switch (op) {
    case IoOp::read:
      letters += 'R';
      break;
    case IoOp::write:
      letters += 'W';
      break;
    case IoOp::flush:
      letters += 'F';
      break;
    case IoOp::discard:
      letters += 'D';
      break;
  }
  if (flags.fua) letters += 'F';
  if (flags.rahead) letters += 'A';
  if (flags.sync) letters += 'S';
  if (flags.meta) letters += 'M';
  return letters;
}

template <class... Arguments>
void Trace::print(std::string_view format, const Arguments&... arguments) const {
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), "{} ", engine_.now().time_since_epoch().count());
  fmt::vformat_to(std::back_inserter(line), fmt::string_view(format.data(), format.size()),
                  fmt::make_format_args(arguments...));
  sink_(std::string_view(line.data(), line.size()));
}

void Trace::phase(std::string_view name) {
  if (sink_) print("phase {}", name);
}

void Trace::op(std::string_view verb, std::uint32_t thread) {
  if (sink_) print("op {} thread {}", verb, thread);
}

void Trace::sync_file_enter(Ino ino, Ino parent, bool datasync) {
  ++(datasync ? counters.fdatasync_calls : counters.fsync_calls);
  if (sink_) {
    print("ext4_sync_file_enter ino {} parent {} datasync {}", ino.value(), parent.value(),
          datasync ? 1 : 0);
  }
}

void Trace::sync_fs(bool wait) {
  ++counters.sync_fs_calls;
  if (sink_) print("ext4_sync_fs wait {}", wait ? 1 : 0);
}

void Trace::journal_start(const JournalStart& start) {
  CHECK(start.type != HandleType::reserved);
  ++counters.journal_starts[start.type];
  if (!sink_) return;
  const auto type = static_cast<unsigned>(start.type);
  if (start.ino) {
    print("ext4_journal_start_inode blocks {}, rsv_blocks {}, revoke_creds {}, type {}, ino {}",
          start.blocks, start.rsv_blocks, start.revoke_creds, type, start.ino->value());
  } else {
    print("ext4_journal_start_sb blocks {}, rsv_blocks {}, revoke_creds {}, type {}", start.blocks,
          start.rsv_blocks, start.revoke_creds, type);
  }
}

void Trace::journal_start_reserved(std::uint32_t blocks) {
  ++counters.journal_starts[HandleType::reserved];
  if (sink_) print("ext4_journal_start_reserved blocks, {}", blocks);
}

void Trace::fc_commit_start(Tid tid) {
  ++counters.fc_commit_starts;
  if (sink_) print("ext4_fc_commit_start tid {}", tid.value());
}

void Trace::fc_commit_stop(const FcCommitStop& stop) {
  counters.add_fc_result(stop.status, stop.blocks);
  if (sink_) {
    print("ext4_fc_commit_stop nblks {}, reason {}, fc = {}, ineligible = {}, agg_nblks {}, tid {}",
          stop.blocks, static_cast<unsigned>(stop.status), stop.commits, stop.ineligible,
          stop.blocks_sum, stop.tid.value());
  }
}

void Trace::fc_cleanup(std::uint32_t area_offset, bool full, Tid tid) {
  ++(full ? counters.fc_cleanup_full : counters.fc_cleanup_fast);
  if (sink_) {
    print("ext4_fc_cleanup j_fc_off {}, full {}, tid {}", area_offset, full ? 1 : 0, tid.value());
  }
}

namespace {

constexpr int kAlreadyTracked = -17;  // -EEXIST

EnumArray<FcTrack>& track_counters(SimCounters& counters, int error) noexcept {
  return error == 0 || error == kAlreadyTracked ? counters.fc_track : counters.fc_track_refused;
}

}  // namespace

void Trace::fc_track(FcTrack what, Tid tid, Ino ino, Tid sync_tid, int error) {
  CHECK(what != FcTrack::range);
  ++track_counters(counters, error)[what];
  if (sink_) {
    print("ext4_fc_track_{} t_tid {}, {} {}, i_sync_tid {}, error {}",
          kFcTrackNames[static_cast<std::size_t>(what)], tid.value(),
          what == FcTrack::inode ? "inode" : "ino", ino.value(), sync_tid.value(), error);
  }
}

void Trace::fc_track_range(Tid tid, Ino ino, Tid sync_tid, std::int64_t first, std::int64_t last,
                           int error) {
  ++track_counters(counters, error)[FcTrack::range];
  if (sink_) {
    print("ext4_fc_track_range t_tid {}, inode {}, i_sync_tid {}, error {}, start {}, end {}",
          tid.value(), ino.value(), sync_tid.value(), error, first, last);
  }
}

void Trace::handle_stats(const HandleStats& stats) {
  counters.add_stopped_handle(stats.requested_blocks, stats.dirtied_blocks);
  if (sink_) {
    print(
        "jbd2_handle_stats tid {} type {} interval {} sync {} requested_blocks {} dirtied_blocks "
        "{}",
        stats.tid.value(), static_cast<unsigned>(stats.type), milliseconds(stats.interval),
        stats.sync ? 1 : 0, stats.requested_blocks, stats.dirtied_blocks);
  }
}

void Trace::start_commit(Tid tid, bool sync) {
  if (sink_) print("jbd2_start_commit transaction {} sync {}", tid.value(), sync ? 1 : 0);
}

void Trace::run_stats(const RunStats& stats) {
  counters.add_transaction(stats.record);
  if (sink_) {
    print(
        "jbd2_run_stats tid {} wait {} request_delay {} running {} locked {} flushing {} "
        "logging {} handle_count {} blocks {} blocks_logged {}",
        stats.record.tid.value(), milliseconds(stats.wait), milliseconds(stats.request_delay),
        milliseconds(stats.running), milliseconds(stats.locked), milliseconds(stats.flushing),
        milliseconds(stats.logging), stats.record.handles, stats.record.blocks,
        stats.record.blocks_logged);
  }
}

void Trace::end_commit(Tid tid, bool sync, Tid head) {
  if (sync) ++counters.sync_commits;
  if (sink_) {
    print("jbd2_end_commit transaction {} sync {} head {}", tid.value(), sync ? 1 : 0,
          head.value());
  }
}

void Trace::checkpoint(int result) {
  ++counters.checkpoint_calls;
  if (sink_) print("jbd2_checkpoint result {}", result);
}

void Trace::checkpoint_stats(const CheckpointStats& stats) {
  ++counters.checkpoint_transactions;
  counters.checkpoint_forced += stats.forced_to_close;
  counters.checkpoint_written += stats.written;
  counters.checkpoint_dropped += stats.dropped;
  if (sink_) {
    print("jbd2_checkpoint_stats tid {} chp_time {} forced_to_close {} written {} dropped {}",
          stats.tid.value(), milliseconds(stats.chp_time), stats.forced_to_close, stats.written,
          stats.dropped);
  }
}

void Trace::update_log_tail(Tid from, Tid to, LogBlock offset, std::uint32_t freed) {
  ++counters.log_tail_updates;
  if (sink_) {
    print("jbd2_update_log_tail from {} to {} offset {} freed {}", from.value(), to.value(),
          offset.value(), freed);
  }
}

void Trace::write_superblock(std::uint32_t write_flags) {
  ++counters.journal_super_writes;
  if (sink_) print("jbd2_write_superblock write_flags {:x}", write_flags);
}

void Trace::bio_queue(const Bio& bio) {
  switch (bio.op) {
    case IoOp::read:
      ++counters.bio_reads;
      counters.bio_read_sectors += bio.sectors;
      break;
    case IoOp::discard:
      ++counters.bio_discards;
      break;
    case IoOp::write:
      if (bio.sectors == 0) {
        ++counters.bio_flush_only;
        break;
      }
      ++counters.bio_writes;
      counters.bio_write_sectors += bio.sectors;
      if (bio.flags.preflush) ++counters.bio_preflush_writes;
      if (bio.flags.fua) ++counters.bio_fua_writes;
      classifier_.count(bio.sector, bio.sectors, bio.flags.meta, counters.sectors);
      break;
    case IoOp::flush:
      CHECK(bio.op != IoOp::flush);
      break;  // of requests only
  }
  if (sink_) {
    print("block_bio_queue {} {} + {}", rwbs(bio.op, bio.flags), bio.sector.value(), bio.sectors);
  }
}

void Trace::rq_issue(const Request& request) {
  if (request.op == IoOp::flush) ++counters.rq_flush_issued;
  if (request.op == IoOp::write) ++counters.rq_write_issued;
  if (sink_) {
    print("block_rq_issue {} {} () {} + {}", rwbs(request.op, request.flags),
          std::uint64_t{request.sectors} * kSectorSize, request.sector.value(), request.sectors);
  }
}

void Trace::rq_complete(const Request& request) {
  if (request.op == IoOp::flush) ++counters.rq_flush_completed;
  if (sink_) {
    print("block_rq_complete {} () {} + {}", rwbs(request.op, request.flags),
          request.sector.value(), request.sectors);
  }
}

}  // namespace jbdlab::sim
