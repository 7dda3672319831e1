#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "sim/counters.h"
#include "sim/device/bio.h"
#include "sim/engine/engine.h"

namespace jbdlab::sim {

// Where on the disk the fixed parts of a file system lie, so that written sectors can be counted by
// place. Built from a plain list; what is in none of its ranges is fs_meta_other or data, depending
// on REQ_META, as groundtruth/summarize.awk has it (backups of super and gdt count as super and
// gdt, reserved descriptor blocks as gdt).
class SectorClassifier {
 public:
  struct Range {
    FsBlock first, end;  // half-open
    SectorClass sector_class;
  };

  SectorClassifier() = default;  // everything is fs_meta_other or data
  // Where ranges overlap, the later one counts.
  SectorClassifier(std::uint32_t block_size, std::vector<Range> ranges);

  SectorClass classify(Sector sector, bool meta) const noexcept;
  // Adds [first, first + count) to `sums`.
  void count(Sector first, std::uint32_t count, bool meta, EnumArray<SectorClass>& sums) const;

 private:
  struct Piece {  // of sectors; sorted, disjoint
    std::uint64_t first, end;
    SectorClass sector_class;
  };
  // The first piece that ends behind `sector`, or the number of pieces.
  std::size_t find(std::uint64_t sector) const noexcept;

  std::vector<Piece> pieces_;
  mutable std::size_t last_ = 0;  // where the last search ended: writes come in runs
};

// Where the modelled kernel has a tracepoint, the simulator calls the method of that name: it adds
// to the counters, and prints the event if somebody listens. So counters and trace cannot disagree.
//
// A line is the time since the start of the run in nanoseconds, the name of the tracepoint, and its
// arguments as the recordings of the ground truth have them (compact.awk):
//   31589000 block_bio_queue WSM 262416 + 8
// Two kinds of lines are our own: "phase NAME", and "op VERB thread N", when an operation of the
// script returns.
class Trace {
 public:
  using Sink = std::function<void(std::string_view line)>;  // without a newline

  explicit Trace(const Engine& engine) noexcept : engine_(engine) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // What has been counted since the last take(counters).
  SimCounters counters;

  void set_sink(Sink sink) { sink_ = std::move(sink); }
  bool has_sink() const noexcept { return static_cast<bool>(sink_); }
  void set_classifier(SectorClassifier classifier) { classifier_ = std::move(classifier); }
  const SectorClassifier& classifier() const noexcept { return classifier_; }

  // Ours. A phase begins (whoever runs the machine takes the counters of the one before); an
  // operation has returned (the runner counts it).
  void phase(std::string_view name);
  void op(std::string_view verb, std::uint32_t thread);

  // ext4.
  void sync_file_enter(Ino ino, Ino parent, bool datasync);
  void sync_fs(bool wait);
  struct JournalStart {
    HandleType type = HandleType::misc;  // not `reserved`: that is journal_start_reserved()
    std::uint32_t blocks = 0;
    std::uint32_t rsv_blocks = 0;
    std::uint32_t revoke_creds = 8;
    std::optional<Ino> ino = std::nullopt;  // ext4_journal_start_inode, else ext4_journal_start_sb
  };
  void journal_start(const JournalStart& start);
  void journal_start_reserved(std::uint32_t blocks);

  // Fast commits. `error` of a track call: 0 recorded, -17 known already, else refused.
  void fc_commit_start(Tid tid);
  struct FcCommitStop {
    FcStatus status = FcStatus::ok;
    std::uint32_t blocks = 0;
    std::uint64_t commits = 0;     // totals since mount
    std::uint64_t ineligible = 0;  // "
    std::uint64_t blocks_sum = 0;  // "
    Tid tid{};
  };
  void fc_commit_stop(const FcCommitStop& stop);
  void fc_cleanup(std::uint32_t area_offset, bool full, Tid tid);
  void fc_track(FcTrack what, Tid tid, Ino ino, Tid sync_tid, int error);
  void fc_track_range(Tid tid, Ino ino, Tid sync_tid, std::int64_t first, std::int64_t last,
                      int error);

  // jbd2.
  struct HandleStats {
    Tid tid{};
    HandleType type = HandleType::misc;
    Duration interval{};
    bool sync = false;
    std::uint32_t requested_blocks = 0;
    std::int32_t dirtied_blocks = 0;  // below 0: a block that another handle paid for was forgotten
  };
  void handle_stats(const HandleStats& stats);
  void start_commit(Tid tid, bool sync);
  struct RunStats {
    TransactionRecord record{};
    Duration wait{}, request_delay{}, running{}, locked{}, flushing{}, logging{};
  };
  void run_stats(const RunStats& stats);
  void end_commit(Tid tid, bool sync, Tid head);
  void checkpoint(int result);
  struct CheckpointStats {
    Tid tid{};
    Duration chp_time{};
    std::uint32_t forced_to_close = 0;
    std::uint32_t written = 0;
    std::uint32_t dropped = 0;
  };
  void checkpoint_stats(const CheckpointStats& stats);
  void update_log_tail(Tid from, Tid to, LogBlock offset, std::uint32_t freed);
  void write_superblock(std::uint32_t write_flags);  // REQ_* bits, as the kernel prints them

  // The block layer.
  void bio_queue(const Bio& bio);
  void rq_issue(const Request& request);
  void rq_complete(const Request& request);

 private:
  template <class... Arguments>
  void print(std::string_view format, const Arguments&... arguments) const;

  const Engine& engine_;
  Sink sink_;
  SectorClassifier classifier_;
};

}  // namespace jbdlab::sim
