#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/time.h"
#include "sim/device/block_layer.h"
#include "sim/ext4/cpu_costs.h"
#include "sim/ext4/extents/extent_map.h"
#include "sim/ext4/inode_table.h"
#include "sim/ext4/journal_driver.h"
#include "sim/ext4/page_cache.h"

namespace jbdlab::ext4 {

// The way of file data from memory to the disk: finds dirty blocks, gives delayed ones a place (as
// unwritten extents, one handle for each contiguous allocation), submits the data, and converts the
// extents when the data is there. And the threads that do it: the worker that converts, and the
// flusher, which wakes every 5 s and writes what has been dirty for 30 s.
// Source: fs/ext4/inode.c (ext4_do_writepages, mpage_*), page-io.c, fs/fs-writeback.c, Linux 6.18.
class Writeback {
 public:
  // Blocks [first, end) of a file.
  struct Range {
    LogicalBlock first{0};
    std::uint64_t end = std::uint64_t{1} << 32;
  };

  Writeback(sim::Engine& engine, sim::BlockLayer& blocks, Volume& volume, JournalDriver& journal,
            InodeTable& inodes, ExtentMap& extents, const CpuCosts& costs, unsigned flusher_cpu);
  ~Writeback();
  Writeback(const Writeback&) = delete;
  Writeback& operator=(const Writeback&) = delete;

  void start_threads();  // once, at mount

  // Writes what is dirty in `range`; data is in flight when it returns (filemap_fdatawrite_range).
  // `sync`: for somebody who waits (WB_SYNC_ALL): blocks whose older contents are still in flight
  // are waited for. Errors: enospc, euclean (of the allocation).
  Task<KResult<void>> write(Thread& thread, Inode& inode, Range range, bool sync);
  // Waits until nothing of `range` is in flight, conversion of extents included.
  Task<> wait(Inode& inode, Range range);
  Task<KResult<void>> write_and_wait(Thread& thread, Inode& inode, Range range);

  // Submits what is dirty in `range` and has a place; opens no handle (data=ordered, from a
  // commit).
  Task<> write_mapped(Inode& inode, Range range);

  // All files, by the flusher: sync (writeback_inodes_sb, then sync_inodes_sb).
  Task<KResult<void>> write_all(bool sync);
  Task<> wait_all();
  // Waits until the worker has converted everything that was queued (flush_workqueue).
  Task<> drain_conversions();

 private:
  struct Scan;
  struct DataIo;
  class Submission;

  struct Folio {  // blocks [first, end) of a file
    std::uint64_t first, end;
  };
  bool process_folio(Inode& inode, Scan& scan, Submission& submission, Folio folio,
                     std::uint64_t from);
  Task<> scan(Inode& inode, Scan& scan, Submission& submission);
  Task<KResult<void>> map_and_submit(Thread& thread, Inode& inode, Scan& scan,
                                     Submission& submission);
  Task<KResult<void>> map_run(Thread& thread, Inode& inode, Scan& scan, DataIo& io);
  DataIo* new_io(Inode& inode);
  static void bio_done(void* io);
  void data_done(DataIo* io);
  void finish(DataIo* io);
  Task<> conversion_worker();
  Task<> flusher();
  Task<KResult<void>> write_listed(bool sync, Time dirtied_before);

  sim::Engine& engine_;
  sim::BlockLayer& blocks_;
  Volume& volume_;
  JournalDriver& journal_;
  InodeTable& inodes_;
  ExtentMap& extents_;
  const CpuCosts costs_;
  Thread worker_thread_, flusher_thread_;
  sim::Mutex flusher_lock_;          // the flusher does one thing at a time
  std::deque<DataIo*> conversions_;  // data written, extents still to be marked
  std::size_t conversions_pending_ = 0;
  std::uint64_t data_in_flight_ = 0;  // DataIos
  sim::WaitQueue conversion_queued_, conversion_done_, data_done_;
  std::vector<std::unique_ptr<DataIo>> ios_;
  std::vector<DataIo*> free_ios_;
};

}  // namespace jbdlab::ext4
