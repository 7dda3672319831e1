#include "sim/ext4/writeback.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/device/bio.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kMaxExtent = 2048;  // blocks mapped in one go (MAX_WRITEPAGES_EXTENT_LEN)
constexpr std::uint32_t kMaxFolios = 256;   // pieces of memory in one bio (BIO_MAX_VECS)
constexpr Duration kFlusherPeriod = std::chrono::seconds(5);  // dirty_writeback_centisecs
constexpr Duration kDirtyExpires = std::chrono::seconds(30);  // dirty_expire_centisecs

}  // namespace

// One pass over the dirty folios of a file (struct mpage_da_data). Folios whose blocks all have a
// place are submitted on the way; with `mapping`, the pass collects the first run of blocks that
// have none, and stops where it ends.
struct Writeback::Scan {
  std::uint64_t next = 0;  // where to go on: first block of a folio, or of the range
  std::uint64_t end = 0;
  bool sync = false;
  bool mapping = false;       // a handle is open
  bool skip_delayed = false;  // ordered data: only what has a place
  bool until_end = false;     // nothing is left
  LogicalBlock run_first{};   // the run that was found: contiguous, delayed or unwritten all of it
  std::uint32_t run_len = 0;
  CachedBlock::Place run_place{};

  bool has_run() const noexcept { return run_len > 0; }
  std::uint64_t run_end() const noexcept { return std::uint64_t{run_first.value()} + run_len; }
};

// Data in flight that ends together (ext4_io_end): it just ends, or extents are converted first.
struct Writeback::DataIo {
  Writeback* owner = nullptr;
  Inode* inode = nullptr;
  std::uint32_t bios = 0;
  std::vector<LogicalBlock> blocks;
  jbd2::Handle* reserved = nullptr;  // to convert the extents with, when the data is there
  std::vector<std::pair<LogicalBlock, std::uint32_t>> unwritten;
};

// Collects dirty blocks that have a place, in order, and submits runs of neighbours on the disk as
// one bio each, as far as a bio holds their folios (struct ext4_io_submit).
class Writeback::Submission {
 public:
  // `thread` submits the plug when it waits for the journal; null: it does not.
  Submission(Writeback& owner, Inode& inode, bool sync, Thread* thread = nullptr)
      : owner_(owner), inode_(inode), thread_(thread), plug_(owner.blocks_), sync_(sync) {
    if (thread_ != nullptr) thread_->plug = &plug_;
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;
  ~Submission() {
    submit();
    if (thread_ != nullptr) thread_->plug = nullptr;
  }

  // All that follows ends with `io`.
  void begin(DataIo& io) {
    submit();
    io_ = &io;
  }
  // The dirty blocks of a folio; those without a place are left out.
  void add_folio(std::uint64_t first, std::uint64_t end) {
    bool new_folio = true;
    PageCache& pages = *inode_.pages;
    auto at = pages.dirty.lower_bound(LogicalBlock{static_cast<std::uint32_t>(first)});
    while (at != pages.dirty.end() && at->value() < end) {
      const LogicalBlock block = *at++;
      const CachedBlock& cached = *pages.find(block);
      if (cached.place != CachedBlock::Place::mapped) continue;
      const bool joins = !run_.empty() && cached.physical.value() == place_.value() + run_.size();
      if (!joins || (new_folio && folios_ == kMaxFolios)) submit();
      if (run_.empty()) {
        place_ = cached.physical;
        new_folio = true;
      }
      if (new_folio) ++folios_;
      new_folio = false;
      run_.push_back(block);
      pages.dirty.erase(block);
      pages.writeback.insert(block);
      contents_.push_back(cached.data);
    }
  }
  // Hands over what has been collected; the plug may keep it.
  void submit() {
    if (run_.empty()) return;
    if (io_ == nullptr) io_ = owner_.new_io(inode_);
    ++io_->bios;
    io_->blocks.insert(io_->blocks.end(), run_.begin(), run_.end());
    sim::Bio bio =
        sim::Bio::write(sim::sector_of(place_, owner_.volume_.geometry().block_size),
                        std::exchange(contents_, {}), {.sync = sync_}, {&Writeback::bio_done, io_});
    bio.segments = folios_;
    plug_.submit(std::move(bio));
    run_.clear();
    folios_ = 0;
  }
  // The end of what shares an io_end.
  void end() {
    submit();
    io_ = nullptr;
  }
  // Before going to sleep.
  void flush() {
    submit();
    plug_.finish();
  }

 private:
  Writeback& owner_;
  Inode& inode_;
  Thread* const thread_;
  sim::Plug plug_;
  const bool sync_;
  DataIo* io_ = nullptr;
  std::vector<LogicalBlock> run_;
  sim::BlockList contents_;
  FsBlock place_;
  std::uint32_t folios_ = 0;
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
  io->unwritten.clear();
  ++data_in_flight_;
  return io;
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
      for (const auto& [first, len] : io->unwritten) {
        const KResult<void> converted =
            co_await extents_.convert_unwritten(worker_thread_, *io->inode, first, len);
        CHECK(converted);  // the range was mapped by us, and nobody frees it meanwhile
      }
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

// Goes through the blocks of a folio from `from` on, adds those that need a place to the run of
// `scan`, and submits the folio if it needs none. False where the pass has to stop: the run ends
// here, there is no handle to map it with, or the file ends (mpage_process_page_bufs).
bool Writeback::process_folio(Inode& inode, Scan& scan, Submission& submission, Folio folio,
                              std::uint64_t from) {
  const PageCache& pages = *inode.pages;
  const std::uint32_t block_size = volume_.geometry().block_size;
  const std::uint64_t file_end = (inode.size + block_size - 1) / block_size;
  // False if `b` is not what the run goes on with.
  const auto add = [&](std::uint64_t b) {
    const LogicalBlock block{static_cast<std::uint32_t>(b)};
    const auto cached = pages.blocks.find(block);
    const bool needs_place = cached != pages.blocks.end() && pages.dirty.contains(block) &&
                             cached->second.place != CachedBlock::Place::mapped;
    if (!needs_place) return !scan.has_run();
    if (!scan.has_run()) {
      if (!scan.mapping) return false;
      scan.run_first = block;
      scan.run_len = 1;
      scan.run_place = cached->second.place;
      return true;
    }
    if (scan.run_len == kMaxExtent || b != scan.run_end() ||
        scan.run_place != cached->second.place) {
      return false;
    }
    ++scan.run_len;
    return true;
  };
  std::uint64_t b = from;
  for (; b < folio.end; ++b) {
    if (b < file_end && add(b)) continue;
    if (scan.has_run() || !scan.mapping) return false;
    break;  // all of it has a place, and the file ends in it
  }
  if (!scan.has_run()) {
    submission.add_folio(folio.first, folio.end);
    scan.next = folio.end;
  }
  if (b >= file_end) {
    scan.until_end = !scan.has_run();
    return scan.has_run();
  }
  return true;
}

Task<> Writeback::scan(Inode& inode, Scan& scan, Submission& submission) {
  PageCache& pages = *inode.pages;
  scan.run_len = 0;
  scan.until_end = false;
  std::uint64_t expected = 0;  // where the next folio must begin, once there is a run
  while (scan.next < scan.end) {
    const auto at = pages.dirty.lower_bound(LogicalBlock{static_cast<std::uint32_t>(scan.next)});
    if (at == pages.dirty.end() || at->value() >= scan.end) break;
    const CachedBlock& cached = *pages.find(*at);
    const std::uint64_t first = cached.folio.value();
    const std::uint64_t end = first + cached.folio_count;
    const Folio folio{first, end};
    if (scan.has_run() && first != expected) co_return;
    const auto busy = pages.writeback.lower_bound(cached.folio);
    if (busy != pages.writeback.end() && busy->value() < end) {  // older contents are on their way
      if (!scan.sync) {
        scan.next = end;
        continue;
      }
      const LogicalBlock block = *busy;
      submission.flush();
      while (pages.writeback.contains(block)) co_await data_done_.wait();
      continue;
    }
    if (scan.skip_delayed) {
      submission.add_folio(first, end);
    } else if (!process_folio(inode, scan, submission, folio, first)) {
      co_return;
    }
    scan.next = expected = end;
  }
  scan.until_end = true;
}

// One allocation for the run of `scan`: as much of it as came out has a place then.
Task<KResult<void>> Writeback::map_run(Thread& thread, Inode& inode, Scan& scan, DataIo& io) {
  const MapFlags flags{.unwritten = true,
                       .before_io = true,
                       .delayed_reserved = scan.run_place == CachedBlock::Place::delayed};
  if (inode.mapping_lock.held()) thread.submit_plug();
  const KResult<Mapping> mapped =
      co_await extents_.map(thread, inode, scan.run_first, scan.run_len, flags);
  if (!mapped) co_return std::unexpected(mapped.error());
  CHECK(mapped->first == scan.run_first && mapped->len > 0 && mapped->len <= scan.run_len);
  for (std::uint32_t i = 0; i < mapped->len; ++i) {
    CachedBlock& cached = *inode.pages->find(LogicalBlock{scan.run_first.value() + i});
    cached.place = CachedBlock::Place::mapped;
    cached.physical = FsBlock{mapped->physical.value() + i};
  }
  if (mapped->state == MappingState::unwritten) {
    if (io.reserved == nullptr) io.reserved = journal_.detach_reserved(thread);
    io.unwritten.emplace_back(scan.run_first, mapped->len);
  }
  scan.run_len = mapped->len;
  co_return KResult<void>();
}

// Gives the run that a scan has found a place, as much of it as one allocation covers, and submits
// the folios that are complete then (mpage_map_and_submit_extent). Where the allocation ends inside
// a folio, the rest of that folio is mapped in the same handle. Stops the handle.
Task<KResult<void>> Writeback::map_and_submit(Thread& thread, Inode& inode, Scan& scan,
                                              Submission& submission) {
  DataIo& io = *new_io(inode);
  ++io.bios;  // ours: it does not end before all of it is submitted
  submission.begin(io);
  KResult<void> done;
  const std::uint64_t found_end = scan.run_end();
  std::uint64_t submitted = scan.run_first.value();  // everything before is
  while (scan.has_run()) {
    co_await engine_.delay(costs_.map);
    done = co_await map_run(thread, inode, scan, io);
    if (!done) break;
    const std::uint64_t mapped_end = scan.run_end();
    std::uint64_t at = scan.run_first.value();
    scan.run_len = 0;
    while (at < mapped_end) {
      const CachedBlock& cached = *inode.pages->find(LogicalBlock{static_cast<std::uint32_t>(at)});
      const std::uint64_t first = cached.folio.value();
      const std::uint64_t end = first + cached.folio_count;
      if (end <= mapped_end) {
        submission.add_folio(first, end);
      } else {  // the allocation ends inside: what a run there holds is mapped next
        process_folio(inode, scan, submission, {first, end}, mapped_end);
      }
      if (!scan.has_run()) submitted = end;
      at = end;
    }
  }
  scan.next = std::max(scan.next, submitted);
  if (submitted < found_end) {
    scan.next = submitted;
    scan.until_end = false;
  }

  // The size on the disk follows the data that has a place.
  const std::uint64_t reached = std::min(inode.size, submitted * volume_.geometry().block_size);
  if (done && reached > inode.disk_size) {
    inode.disk_size = reached;
    done = co_await inodes_.mark_dirty(thread, inode);
  }
  co_await journal_.stop(thread);
  submission.end();
  bio_done(&io);
  co_return done;
}

Task<KResult<void>> Writeback::write(Thread& thread, Inode& inode, Range range, bool sync) {
  if (inode.pages->dirty.empty()) co_return KResult<void>();
  Submission submission(*this, inode, sync, &thread);
  Scan scan{.next = range.first.value(), .end = range.end, .sync = sync};
  co_await this->scan(inode, scan, submission);  // what needs no handle goes first
  submission.end();
  const std::uint32_t credits = write_credits(volume_.geometry());
  const std::uint32_t reserved = convert_credits(volume_.geometry());
  while (!scan.until_end) {
    const KResult<void> started =
        co_await journal_.start(thread, HandleType::write_page, credits, reserved, inode.ino);
    if (!started) co_return started;
    scan.mapping = true;
    co_await this->scan(inode, scan, submission);
    submission.end();
    if (!scan.has_run()) {
      co_await journal_.stop(thread);
      continue;
    }
    const KResult<void> done = co_await map_and_submit(thread, inode, scan, submission);
    if (!done) co_return done;
  }
  co_return KResult<void>();
}

Task<> Writeback::write_mapped(Inode& inode, Range range) {
  Submission submission(*this, inode, true);
  Scan scan{.next = range.first.value(), .end = range.end, .sync = true, .skip_delayed = true};
  co_await this->scan(inode, scan, submission);
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
  KResult<void> result;
  for (Inode* const inode : inodes_.dirty_inodes(dirtied_before)) {
    const KResult<void> written = co_await write(flusher_thread_, *inode, Range(), sync);
    if (!written && result) result = written;
    if (inode->pages->dirty.empty()) inodes_.note_clean(*inode);
  }
  co_return result;
}

Task<KResult<void>> Writeback::write_all(bool sync) {
  if (!inodes_.any_dirty()) co_return KResult<void>();
  co_await engine_.delay(costs_.wake);  // of the flusher
  const KResult<void> result = co_await write_listed(sync, Time::max());
  co_await engine_.delay(costs_.flusher_wait);
  co_return result;
}

Task<> Writeback::wait_all() {
  while (data_in_flight_ > 0) co_await data_done_.wait();
}

Task<> Writeback::flusher() {
  for (;;) {
    co_await engine_.background_delay(kFlusherPeriod);
    const Time before = engine_.now() - kDirtyExpires;
    // Errors stay with the data: it is dirty still, and whoever syncs it will be told.
    static_cast<void>(co_await write_listed(false, before));
    const std::optional<Time> oldest = volume_.buffers().oldest_dirty();
    if (oldest && *oldest <= before) co_await volume_.buffers().write_dirty(false);
  }
}

}  // namespace jbdlab::ext4
