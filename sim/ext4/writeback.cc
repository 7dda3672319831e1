#include "sim/ext4/writeback.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/device/bio.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kMaxExtent = 2048;  // blocks mapped in one go (MAX_WRITEPAGES_EXTENT_LEN)
constexpr std::uint32_t kMaxFolios = 256;   // pieces of memory in one bio (BIO_MAX_VECS)
constexpr Duration kFlusherPeriod = std::chrono::seconds(5);   // dirty_writeback_centisecs
constexpr Duration kDirtyExpires = std::chrono::seconds(30);   // dirty_expire_centisecs

}  // namespace

// One pass over the dirty blocks of a file (struct mpage_da_data). Finds blocks that have a place
// and submits them as it goes; with `mapping`, stops with the first run of delayed blocks.
struct Writeback::Scan {
  std::uint64_t next = 0;  // where to go on
  std::uint64_t end = 0;
  bool sync = false;
  bool mapping = false;       // a handle is open
  bool skip_delayed = false;  // ordered data: only what has a place
  bool until_end = false;     // nothing is left
  LogicalBlock run_first{};   // the run of delayed blocks found
  std::uint32_t run_len = 0;
  CachedBlock::Place run_place{};  // delayed or unwritten, all of it
};

// Data in flight that ends together (ext4_io_end): either it just ends, or an extent is converted.
struct Writeback::DataIo {
  Writeback* owner = nullptr;
  Inode* inode = nullptr;
  std::uint32_t bios = 0;
  std::vector<LogicalBlock> blocks;
  jbd2::Handle* reserved = nullptr;  // to convert [first, first + len) with, when the data is there
  LogicalBlock first;
  std::uint32_t len = 0;
};

Writeback::Writeback(sim::Engine& engine, sim::BlockLayer& blocks, Volume& volume,
                     JournalDriver& journal, InodeTable& inodes, ExtentMap& extents,
                     const CpuCosts& costs, unsigned flusher_cpu)
    : engine_(engine),
      blocks_(blocks),
      volume_(volume),
      journal_(journal),
      inodes_(inodes),
      extents_(extents),
      costs_(costs),
      flusher_lock_(engine),
      conversion_queued_(engine),
      conversion_done_(engine),
      data_done_(engine) {
  flusher_thread_.cpu = flusher_cpu;
  worker_thread_.cpu = flusher_cpu;
}

Writeback::~Writeback() = default;

void Writeback::start_threads() {
  engine_.spawn(conversion_worker());
  engine_.spawn(flusher());
}

void Writeback::note_dirty(Inode& inode) {
  if (inode.dirty_order != 0) return;
  inode.dirty_order = ++last_dirty_order_;
  inode.dirtied = engine_.now();
  dirty_inodes_.emplace(inode.dirty_order, &inode);
}

// ---- submitting

Writeback::DataIo* Writeback::new_io(Inode& inode) {
  if (free_ios_.empty()) {
    ios_.push_back(std::make_unique<DataIo>());
    free_ios_.push_back(ios_.back().get());
  }
  DataIo* const io = free_ios_.back();
  free_ios_.pop_back();
  io->owner = this;
  io->inode = &inode;
  io->bios = 0;
  io->blocks.clear();
  io->reserved = nullptr;
  ++data_in_flight_;
  return io;
}

// Submits `blocks`, which lie in one piece from `first` on, in as few bios as hold their folios.
void Writeback::submit_run(sim::Plug& plug, Inode& inode, const std::vector<LogicalBlock>& blocks,
                           FsBlock first, bool sync, DataIo* io) {
  io->blocks.insert(io->blocks.end(), blocks.begin(), blocks.end());
  std::size_t at = 0;
  while (at < blocks.size()) {
    const FsBlock where{first.value() + at};
    sim::BlockList contents;
    std::uint32_t folios = 0;
    for (; at < blocks.size(); ++at) {
      const CachedBlock& cached = *inode.pages->find(blocks[at]);
      const bool new_folio = cached.starts_folio || contents.empty();
      if (new_folio && folios == kMaxFolios) break;
      if (new_folio) ++folios;
      inode.pages->dirty.erase(blocks[at]);
      inode.pages->writeback.insert(blocks[at]);
      contents.push_back(cached.data);
    }
    ++io->bios;
    sim::Bio bio = sim::Bio::write(sim::sector_of(where, volume_.geometry().block_size),
                                   std::move(contents), {.sync = sync},
                                   {&Writeback::bio_done, io});
    bio.segments = folios;
    plug.submit(std::move(bio));
  }
}

void Writeback::bio_done(void* context) {
  DataIo* const io = static_cast<DataIo*>(context);
  if (--io->bios == 0) io->owner->data_done(io);
}

void Writeback::data_done(DataIo* io) {
  if (io->reserved == nullptr) {
    finish(io);
    return;
  }
  ++conversions_pending_;
  conversions_.push_back(io);
  conversion_queued_.wake_all();
}

void Writeback::finish(DataIo* io) {
  for (const LogicalBlock block : io->blocks) io->inode->pages->writeback.erase(block);
  --data_in_flight_;
  free_ios_.push_back(io);
  data_done_.wake_all();
}

// Marks extents written, one after the other (ext4_end_io_rsv_work).
Task<> Writeback::conversion_worker() {
  for (;;) {
    while (conversions_.empty()) co_await conversion_queued_.wait();
    co_await engine_.delay(costs_.wake);
    while (!conversions_.empty()) {
      DataIo* const io = conversions_.front();
      conversions_.pop_front();
      co_await journal_.start_reserved(worker_thread_, io->reserved, HandleType::ext_convert);
      const KResult<void> converted =
          co_await extents_.convert_unwritten(worker_thread_, *io->inode, io->first, io->len);
      CHECK(converted);  // the range was mapped by us, and nobody frees it meanwhile
      co_await journal_.stop(worker_thread_);
      finish(io);
      --conversions_pending_;
    }
    conversion_done_.wake_all();
  }
}

Task<> Writeback::drain_conversions() {
  while (conversions_pending_ > 0) co_await conversion_done_.wait();
}

// ---- scanning

Task<> Writeback::scan(Inode& inode, Scan& scan, sim::Plug& plug) {
  PageCache& pages = *inode.pages;
  DataIo* io = nullptr;
  std::vector<LogicalBlock> run;  // contiguous on the disk, not submitted yet
  FsBlock run_place;
  const auto flush_run = [&] {
    if (run.empty()) return;
    if (io == nullptr) io = new_io(inode);
    submit_run(plug, inode, run, run_place, scan.sync, io);
    run.clear();
  };
  scan.run_len = 0;
  scan.until_end = false;
  for (;;) {
    if (scan.next >= scan.end) {
      scan.until_end = true;
      break;
    }
    const auto at = pages.dirty.lower_bound(LogicalBlock{static_cast<std::uint32_t>(scan.next)});
    if (at == pages.dirty.end() || at->value() >= scan.end) {
      scan.until_end = true;
      break;
    }
    const LogicalBlock block = *at;
    const CachedBlock& cached = *pages.find(block);
    if (scan.run_len > 0 && block.value() != scan.run_first.value() + scan.run_len) break;
    if (pages.writeback.contains(block)) {  // its older contents are on their way
      if (!scan.sync) {
        scan.next = std::uint64_t{block.value()} + 1;
        continue;
      }
      flush_run();
      plug.finish();
      while (pages.writeback.contains(block)) co_await data_done_.wait();
      continue;
    }
    if (cached.place == CachedBlock::Place::mapped) {
      if (scan.run_len > 0) break;
      if (!run.empty() && cached.physical.value() != run_place.value() + run.size()) flush_run();
      if (run.empty()) run_place = cached.physical;
      run.push_back(block);
    } else if (scan.skip_delayed) {
      // stays dirty, for somebody who may allocate
    } else {
      if (!scan.mapping || scan.run_len == kMaxExtent) break;
      if (scan.run_len == 0) {
        scan.run_first = block;
        scan.run_place = cached.place;
      }
      if (scan.run_place != cached.place) break;
      ++scan.run_len;
    }
    scan.next = std::uint64_t{block.value()} + 1;
  }
  flush_run();
}

// Gives the run that a scan has found a place, as much of it as one allocation covers, and submits
// its data (mpage_map_and_submit_extent).
Task<KResult<void>> Writeback::map_and_submit(Thread& thread, Inode& inode, Scan& scan,
                                              sim::Plug& plug) {
  const LogicalBlock first = scan.run_first;
  co_await engine_.delay(costs_.map);
  const MapFlags flags{.unwritten = true,
                       .before_io = true,
                       .delayed_reserved = scan.run_place == CachedBlock::Place::delayed};
  const KResult<Mapping> mapped =
      co_await extents_.map(thread, inode, first, scan.run_len, flags);
  if (!mapped) co_return std::unexpected(mapped.error());
  CHECK(mapped->first == first && mapped->len > 0);

  DataIo* const io = new_io(inode);
  std::vector<LogicalBlock> run;
  for (std::uint32_t i = 0; i < mapped->len; ++i) {
    const LogicalBlock block{first.value() + i};
    CachedBlock& cached = *inode.pages->find(block);
    cached.place = CachedBlock::Place::mapped;
    cached.physical = FsBlock{mapped->physical.value() + i};
    run.push_back(block);
  }
  if (mapped->state == MappingState::unwritten) {
    io->reserved = journal_.detach_reserved(thread);
    io->first = first;
    io->len = mapped->len;
  }
  scan.next = std::uint64_t{first.value()} + mapped->len;
  if (mapped->len < scan.run_len) scan.until_end = false;

  // The size on the disk follows the data that has a place.
  const std::uint64_t reached =
      std::min(inode.size, scan.next * volume_.geometry().block_size);
  KResult<void> done;
  if (reached > inode.disk_size) {
    inode.disk_size = reached;
    done = co_await inodes_.mark_dirty(thread, inode);
  }
  co_await journal_.stop(thread);
  submit_run(plug, inode, run, mapped->physical, scan.sync, io);
  co_return done;
}

Task<KResult<void>> Writeback::write(Thread& thread, Inode& inode, Range range, bool sync) {
  if (inode.pages->dirty.empty()) co_return KResult<void>();
  sim::Plug plug(blocks_);
  Scan scan{.next = range.first.value(), .end = range.end, .sync = sync};
  co_await this->scan(inode, scan, plug);  // what needs no handle goes first
  const std::uint32_t credits = write_credits(volume_.geometry());
  const std::uint32_t reserved = convert_credits(volume_.geometry());
  while (!scan.until_end) {
    const KResult<void> started = co_await journal_.start(thread, HandleType::write_page, credits,
                                                          reserved, inode.ino);
    if (!started) co_return started;
    scan.mapping = true;
    co_await this->scan(inode, scan, plug);
    KResult<void> done;
    if (scan.run_len > 0) {
      done = co_await map_and_submit(thread, inode, scan, plug);
    } else {
      co_await journal_.stop(thread);
    }
    if (!done) {
      if (thread.handle != nullptr) co_await journal_.stop(thread);
      co_return done;
    }
  }
  if (inode.pages->dirty.empty() && inode.dirty_order != 0) {
    dirty_inodes_.erase(std::exchange(inode.dirty_order, 0));
  }
  co_return KResult<void>();
}

Task<> Writeback::write_mapped(Inode& inode) {
  sim::Plug plug(blocks_);
  Scan scan{.end = Range().end, .sync = true, .skip_delayed = true};
  co_await this->scan(inode, scan, plug);
}

Task<> Writeback::wait(Inode& inode, Range range) {
  const auto in_flight = [&] {
    const auto at = inode.pages->writeback.lower_bound(range.first);
    return at != inode.pages->writeback.end() && at->value() < range.end;
  };
  bool waited = false;
  while (in_flight()) {
    waited = true;
    co_await data_done_.wait();
  }
  if (waited) co_await engine_.delay(costs_.wake);
}

Task<KResult<void>> Writeback::write_and_wait(Thread& thread, Inode& inode, Range range) {
  const KResult<void> written = co_await write(thread, inode, range, true);
  co_await wait(inode, range);
  co_return written;
}

// ---- all files

Task<KResult<void>> Writeback::write_listed(bool sync, Time dirtied_before) {
  const sim::Mutex::Guard guard = co_await flusher_lock_.lock();
  std::vector<Inode*> listed;
  for (const auto& [order, inode] : dirty_inodes_) listed.push_back(inode);
  KResult<void> result;
  for (Inode* const inode : listed) {
    if (inode->dirtied > dirtied_before) continue;
    const KResult<void> written = co_await write(flusher_thread_, *inode, Range(), sync);
    if (!written && result) result = written;
  }
  co_return result;
}

Task<KResult<void>> Writeback::write_all(bool sync) {
  if (dirty_inodes_.empty()) co_return KResult<void>();
  co_await engine_.delay(costs_.wake);  // of the flusher
  const KResult<void> result = co_await write_listed(sync, Time::max());
  co_await engine_.delay(costs_.wake);  // of whoever waits for it
  co_return result;
}

Task<> Writeback::wait_all() {
  while (data_in_flight_ > 0) co_await data_done_.wait();
}

Task<> Writeback::flusher() {
  for (;;) {
    co_await engine_.delay(kFlusherPeriod);
    const Time before = engine_.now() - kDirtyExpires;
    // Errors stay with the data: it is dirty still, and whoever syncs it will be told.
    static_cast<void>(co_await write_listed(false, before));
    const std::optional<Time> oldest = volume_.buffers().oldest_dirty();
    if (oldest && *oldest <= before) co_await volume_.buffers().write_dirty(false);
  }
}

}  // namespace jbdlab::ext4
