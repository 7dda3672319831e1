#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

// What a simulated machine counts: the same events that a recording of a real kernel counts through
// its tracepoints, under the same names (groundtruth/README.md, "Counters of a phase"), so that the
// two can be held against each other line by line. The comment at each counter names the event.
//
// The parts of the machine (device, journal driver, ext4) share one SimCounters and add to it where
// the modelled kernel function has its tracepoint. Whoever runs the machine calls take() at the
// border between two phases.
namespace jbdlab::sim {

// An array with one element for each value of an enum whose last enumerator is `kCount`.
template <class Enum, class T = std::uint64_t>
class EnumArray {
 public:
  static constexpr std::size_t kSize = static_cast<std::size_t>(Enum::kCount);
  constexpr T& operator[](Enum e) { return values_[static_cast<std::size_t>(e)]; }
  constexpr const T& operator[](Enum e) const { return values_[static_cast<std::size_t>(e)]; }
  constexpr auto begin() { return values_.begin(); }
  constexpr auto end() { return values_.end(); }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() const { return values_.end(); }
  friend constexpr bool operator==(const EnumArray&, const EnumArray&) = default;
  constexpr EnumArray& operator+=(const EnumArray& other) {
    for (std::size_t i = 0; i < kSize; ++i) values_[i] += other.values_[i];
    return *this;
  }

 private:
  std::array<T, kSize> values_{};
};

// Types of a handle (EXT4_HT_* of fs/ext4/ext4_jbd2.h, in that order); `reserved` stands for the
// start of a handle that another one had reserved (ext4_journal_start_reserved).
enum class HandleType : std::uint8_t {
  misc,
  inode,
  write_page,
  map_blocks,
  dir,
  truncate,
  quota,
  resize,
  migrate,
  move_extents,
  xattr,
  ext_convert,
  reserved,
  kCount
};
inline constexpr std::array<std::string_view, EnumArray<HandleType>::kSize> kHandleTypeNames{
    "MISC",   "INODE",   "WRITE_PAGE",   "MAP_BLOCKS", "DIR",         "TRUNCATE", "QUOTA",
    "RESIZE", "MIGRATE", "MOVE_EXTENTS", "XATTR",      "EXT_CONVERT", "RESERVED"};

// Where on the disk a written sector lies. `fs_meta_other` is directories, extent and attribute
// blocks (write requests that carry REQ_META and lie in no fixed table), `data` the rest.
enum class SectorClass : std::uint8_t {
  journal_super,
  journal_log,
  journal_fc,
  super,
  gdt,
  block_bitmap,
  inode_bitmap,
  inode_table,
  fs_meta_other,
  data,
  kCount
};
inline constexpr std::array<std::string_view, EnumArray<SectorClass>::kSize> kSectorClassNames{
    "journal_super", "journal_log",  "journal_fc",  "super",         "gdt",
    "block_bitmap",  "inode_bitmap", "inode_table", "fs_meta_other", "data"};

// How a fast commit ended (EXT4_FC_STATUS_* of fs/ext4/fast_commit.h).
enum class FcStatus : std::uint8_t {
  ok,          // written
  ineligible,  // a full commit instead
  skipped,     // the transaction was committed already, or another thread's commit covered it
  failed,      // area full, or no full commit since mount yet: a full commit instead
  kCount
};
inline constexpr std::array<std::string_view, EnumArray<FcStatus>::kSize> kFcStatusNames{
    "fc_status_0", "fc_status_1", "fc_status_2", "fc_status_3"};

// Calls that record a change for the next fast commit (ext4_fc_track_*).
enum class FcTrack : std::uint8_t { create, link, unlink, inode, range, kCount };
inline constexpr std::array<std::string_view, EnumArray<FcTrack>::kSize> kFcTrackNames{
    "create", "link", "unlink", "inode", "range"};

// One full commit, as jbd2_run_stats tells it. `blocks` is metadata blocks, `blocks_logged` adds
// descriptor, revoke and commit blocks.
struct TransactionRecord {
  Tid tid{};
  std::uint32_t handles = 0;
  std::uint32_t blocks = 0;
  std::uint32_t blocks_logged = 0;
  Time committed{};  // when the commit was over
  friend bool operator==(const TransactionRecord&, const TransactionRecord&) = default;
};

// The counters that are plain sums. Only std::uint64_t members: kTotals below names each.
struct CounterTotals {
  // Sync calls.
  std::uint64_t fsync_calls = 0;      // ext4_sync_file_enter, O_SYNC writes too
  std::uint64_t fdatasync_calls = 0;  // ext4_sync_file_enter with datasync, O_DSYNC writes too
  std::uint64_t sync_fs_calls = 0;    // ext4_sync_fs: two for each sync or syncfs
  // Full commits. Add through add_transaction(), but for sync_commits.
  std::uint64_t full_commits = 0;      // jbd2_run_stats
  std::uint64_t sync_commits = 0;      // jbd2_end_commit whose transaction had a sync handle
  std::uint64_t tx_handles = 0;        // sum over the transactions
  std::uint64_t tx_blocks = 0;         // sum over the transactions
  std::uint64_t tx_blocks_logged = 0;  // sum over the transactions
  // Fast commits. Statuses and blocks: add through add_fc_result().
  std::uint64_t fc_commit_starts = 0;  // ext4_fc_commit_start
  std::uint64_t fc_blocks = 0;         // sum of nblks of ext4_fc_commit_stop
  std::uint64_t fc_cleanup_full = 0;   // ext4_fc_cleanup after a full commit
  std::uint64_t fc_cleanup_fast = 0;   // ext4_fc_cleanup after a fast commit
  // Handles. Add through add_stopped_handle().
  std::uint64_t handles_stopped = 0;           // jbd2_handle_stats: the outermost stop
  std::uint64_t handles_requested_blocks = 0;  // sum of the credits asked for
  std::uint64_t handles_dirtied_blocks = 0;    // sum of the credits used
  // Checkpointing.
  std::uint64_t checkpoint_calls = 0;         // jbd2_checkpoint
  std::uint64_t checkpoint_transactions = 0;  // jbd2_checkpoint_stats: transactions taken off
  std::uint64_t checkpoint_forced = 0;        // its forced_to_close: commits that it had to force
  std::uint64_t checkpoint_written = 0;       // its written: buffers
  std::uint64_t checkpoint_dropped = 0;       // its dropped: buffers that were clean already
  std::uint64_t log_tail_updates = 0;         // jbd2_update_log_tail
  std::uint64_t journal_super_writes = 0;     // jbd2_write_superblock
  // Requests as the file system submits them (block_bio_queue). Sectors have 512 bytes.
  std::uint64_t bio_reads = 0;
  std::uint64_t bio_read_sectors = 0;
  std::uint64_t bio_writes = 0;  // with data; a flush without data counts only as bio_flush_only
  std::uint64_t bio_write_sectors = 0;
  std::uint64_t bio_preflush_writes = 0;  // of bio_writes: with a cache flush before
  std::uint64_t bio_fua_writes = 0;       // of bio_writes: force unit access
  std::uint64_t bio_flush_only = 0;
  std::uint64_t bio_discards = 0;
  // Requests as they reach the device (block_rq_issue, block_rq_complete): after merging, and with
  // preflush and FUA lowered to flushes of their own where the device has no FUA.
  std::uint64_t rq_write_issued = 0;
  std::uint64_t rq_flush_issued = 0;
  std::uint64_t rq_flush_completed = 0;
  friend bool operator==(const CounterTotals&, const CounterTotals&) = default;
};

// Name and place of every member of CounterTotals, in the order in which reports print them. A dot
// in a name is a level of the report.
struct NamedTotal {
  std::string_view name;
  std::uint64_t CounterTotals::* member;
};
inline constexpr auto kTotals = std::to_array<NamedTotal>({
    {"fsync_calls", &CounterTotals::fsync_calls},
    {"fdatasync_calls", &CounterTotals::fdatasync_calls},
    {"sync_fs_calls", &CounterTotals::sync_fs_calls},
    {"full_commits", &CounterTotals::full_commits},
    {"sync_commits", &CounterTotals::sync_commits},
    {"tx_handles", &CounterTotals::tx_handles},
    {"tx_blocks", &CounterTotals::tx_blocks},
    {"tx_blocks_logged", &CounterTotals::tx_blocks_logged},
    {"fc_commit_starts", &CounterTotals::fc_commit_starts},
    {"fc_blocks", &CounterTotals::fc_blocks},
    {"fc_cleanup.full", &CounterTotals::fc_cleanup_full},
    {"fc_cleanup.fast", &CounterTotals::fc_cleanup_fast},
    {"handles_stopped", &CounterTotals::handles_stopped},
    {"handles_requested_blocks", &CounterTotals::handles_requested_blocks},
    {"handles_dirtied_blocks", &CounterTotals::handles_dirtied_blocks},
    {"checkpoint_calls", &CounterTotals::checkpoint_calls},
    {"checkpoint_transactions", &CounterTotals::checkpoint_transactions},
    {"checkpoint_forced", &CounterTotals::checkpoint_forced},
    {"checkpoint_written", &CounterTotals::checkpoint_written},
    {"checkpoint_dropped", &CounterTotals::checkpoint_dropped},
    {"log_tail_updates", &CounterTotals::log_tail_updates},
    {"journal_super_writes", &CounterTotals::journal_super_writes},
    {"bio_reads", &CounterTotals::bio_reads},
    {"bio_read_sectors", &CounterTotals::bio_read_sectors},
    {"bio_writes", &CounterTotals::bio_writes},
    {"bio_write_sectors", &CounterTotals::bio_write_sectors},
    {"bio_preflush_writes", &CounterTotals::bio_preflush_writes},
    {"bio_fua_writes", &CounterTotals::bio_fua_writes},
    {"bio_flush_only", &CounterTotals::bio_flush_only},
    {"bio_discards", &CounterTotals::bio_discards},
    {"rq_write_issued", &CounterTotals::rq_write_issued},
    {"rq_flush_issued", &CounterTotals::rq_flush_issued},
    {"rq_flush_completed", &CounterTotals::rq_flush_completed},
});
static_assert(sizeof(CounterTotals) == kTotals.size() * sizeof(std::uint64_t),
              "every member of CounterTotals has its line in kTotals");

// Everything that is counted. Invariants, kept by the add_ functions: the tx_ sums and full_commits
// are those of `transactions`; fc_status and fc_blocks are those of `fc_results`.
struct SimCounters : CounterTotals {
  EnumArray<HandleType> journal_starts;  // ext4_journal_start, nested ones too
  EnumArray<SectorClass> sectors;        // of bio_write_sectors, by place
  EnumArray<FcStatus> fc_status;
  EnumArray<FcTrack> fc_track;          // calls that recorded a change
  EnumArray<FcTrack> fc_track_refused;  // calls refused: the transaction was ineligible already
  std::vector<TransactionRecord> transactions;  // in the order of commits
  std::vector<std::int32_t> fc_results;         // in order: blocks of a fast commit, or -1, -2, -3

  void add_transaction(const TransactionRecord& t) {
    ++full_commits;
    tx_handles += t.handles;
    tx_blocks += t.blocks;
    tx_blocks_logged += t.blocks_logged;
    transactions.push_back(t);
  }
  // `blocks` is 0 unless `status` is ok, except that a failed commit may have written some.
  void add_fc_result(FcStatus status, std::uint32_t blocks) {
    ++fc_status[status];
    fc_blocks += blocks;
    fc_results.push_back(status == FcStatus::ok ? static_cast<std::int32_t>(blocks)
                                                : -static_cast<std::int32_t>(status));
  }
  // `dirtied_blocks` below 0: the handle forgot a block that another one had paid for; the sum over
  // a phase is not.
  void add_stopped_handle(std::uint64_t requested_blocks, std::int64_t dirtied_blocks) {
    ++handles_stopped;
    handles_requested_blocks += requested_blocks;
    handles_dirtied_blocks += static_cast<std::uint64_t>(dirtied_blocks);
  }

  // Appends what was counted later than *this.
  SimCounters& operator+=(const SimCounters& later) {
    for (const NamedTotal& t : kTotals) this->*t.member += later.*t.member;
    journal_starts += later.journal_starts;
    sectors += later.sectors;
    fc_status += later.fc_status;
    fc_track += later.fc_track;
    fc_track_refused += later.fc_track_refused;
    transactions.insert(transactions.end(), later.transactions.begin(), later.transactions.end());
    fc_results.insert(fc_results.end(), later.fc_results.begin(), later.fc_results.end());
    return *this;
  }
  friend bool operator==(const SimCounters&, const SimCounters&) = default;
};

// What was counted so far; counting starts again at zero. For the border between two phases:
// phase.sim += take(live).
inline SimCounters take(SimCounters& live) { return std::exchange(live, SimCounters{}); }

}  // namespace jbdlab::sim
