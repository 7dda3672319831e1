// write(2) into the page cache with delayed allocation. Source: fs/ext4/file.c
// (ext4_buffered_write_iter, ext4_write_checks), fs/ext4/inode.c (ext4_da_write_begin,
// ext4_da_do_write_end, ext4_zero_partial_blocks), fs/inode.c (file_update_time).

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "sim/ext4/file_system.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kPage = 4096;
constexpr std::uint64_t kCallMax = 8 << 20;  // the replay splits larger writes into calls of 8 MiB
constexpr std::uint32_t kMagicStride = 1024;
constexpr Duration kCopyPage = std::chrono::nanoseconds(300);

}  // namespace

namespace {

// True if a block of pages [first, end) is in memory.
bool any_cached(const PageCache& pages, std::uint64_t first, std::uint64_t end,
                std::uint32_t blocks_per_page) {
  const LogicalBlock from{static_cast<std::uint32_t>(first * blocks_per_page)};
  const auto at = pages.blocks.lower_bound(from);
  return at != pages.blocks.end() && at->first.value() < end * blocks_per_page;
}

// Pages of the folio that a write makes at `page` with `left` bytes to go: as large as the write,
// as long as it is aligned to its own size and nothing of it is there yet (__filemap_get_folio,
// FGP_WRITEBEGIN).
std::uint64_t folio_pages(const PageCache& pages, std::uint64_t page, std::uint64_t left,
                          std::uint32_t blocks_per_page) {
  constexpr unsigned kOrderMax = 11;  // EXT4_MAX_PAGECACHE_ORDER with blocks of a page
  unsigned order = left < 2 * kPage ? 0 : static_cast<unsigned>(std::bit_width(left / kPage)) - 1;
  order = std::min(order, kOrderMax);
  if (page != 0) order = std::min(order, static_cast<unsigned>(std::countr_zero(page)));
  while (order > 0 &&
         any_cached(pages, page, page + (std::uint64_t{1} << order), blocks_per_page)) {
    --order;
  }
  return std::uint64_t{1} << order;
}

}  // namespace

// A change of the time stamps costs a handle; none if they would stay as they are.
Task<KResult<void>> FileSystem::update_times(Thread& thread, Inode& inode) {
  const Timestamp now = clock_.current(inode);
  if (inode.mtime == now && inode.ctime == now) co_return KResult<void>();
  inode.mtime = clock_.set_ctime(inode);
  ++inode.version;
  co_return co_await inodes_->dirty(thread, inode);
}

Task<BlockRef> FileSystem::read_data(FsBlock block) {
  BlockRef contents;
  sim::Latch read(engine_);
  blocks_.submit(sim::Bio::read_block(block, volume_->geometry().block_size, &contents, {},
                                      sim::completes(read)));
  co_await read.wait();
  co_return contents;
}

// One more delayed block; if there is no room, commits what has been freed, and looks again.
Task<KResult<void>> FileSystem::reserve_block(Inode& inode) {
  constexpr int kRetries = 3;  // ext4_should_retry_alloc
  for (int attempt = 0;; ++attempt) {
    const KResult<void> claimed = block_allocator_->claim_delayed(1);
    if (claimed) {
      ++inode.reserved_blocks;
      co_return claimed;
    }
    if (attempt == kRetries || block_allocator_->free_pending() == 0) co_return claimed;
    const std::optional<Tid> tid = journal_->machine().force_commit();
    if (tid) co_await journal_->wait_commit(*tid);
  }
}

// Brings `block` into the cache: reserved if it has no place yet; with its old contents, unless it
// will be written as a whole.
Task<KResult<void>> FileSystem::prepare_block(Inode& inode, LogicalBlock block, bool whole,
                                              const PageWrite& write) {
  if (inode.pages->find(block) != nullptr) co_return KResult<void>();
  const KResult<Mapping> mapping = co_await extents_->lookup(inode, block, 1);
  if (!mapping) co_return std::unexpected(mapping.error());
  CachedBlock cached;
  cached.data = BlockRef::zeros(volume_->geometry().block_size);
  const std::uint32_t per_page = kPage / volume_->geometry().block_size;
  const std::uint64_t page = block.value() / per_page;
  const bool in_folio = page >= write.folio_page && page < write.folio_page + write.folio_pages;
  cached.folio =
      LogicalBlock{static_cast<std::uint32_t>((in_folio ? write.folio_page : page) * per_page)};
  cached.folio_count = static_cast<std::uint32_t>(in_folio ? write.folio_pages : 1) * per_page;
  switch (mapping->state) {
    case MappingState::hole: {
      const KResult<void> reserved = co_await reserve_block(inode);
      if (!reserved) co_return reserved;
      cached.place = CachedBlock::Place::delayed;
      break;
    }
    case MappingState::unwritten:
      cached.place = CachedBlock::Place::unwritten;
      break;
    case MappingState::written:
      cached.place = CachedBlock::Place::mapped;
      cached.physical = mapping->physical;
      if (!whole) cached.data = co_await read_data(cached.physical);
      break;
  }
  inode.pages->blocks.emplace(block, std::move(cached));
  co_return KResult<void>();
}

// The part of a write that lies in one page.
Task<KResult<void>> FileSystem::write_page(Thread& thread, Inode& inode, std::uint64_t offset,
                                           std::uint32_t len, PageWrite write) {
  const std::uint32_t block_size = volume_->geometry().block_size;
  const std::uint64_t end = offset + len;
  for (std::uint64_t at = offset; at < end;) {
    const LogicalBlock block{static_cast<std::uint32_t>(at / block_size)};
    const std::uint64_t block_start = std::uint64_t{block.value()} * block_size;
    const auto from = static_cast<std::uint32_t>(at - block_start);
    const auto to =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(end - block_start, block_size));
    const KResult<void> prepared =
        co_await prepare_block(inode, block, from == 0 && to == block_size, write);
    if (!prepared) co_return prepared;
    BlockRef& contents = inode.pages->find(block)->data;
    contents.overlay_pattern(write.data.seed, block_start, from, to);
    if (write.data.magic) {
      constexpr std::array<std::byte, 4> kMagic{std::byte{0xC0}, std::byte{0x3B}, std::byte{0x39},
                                                std::byte{0x98}};
      const MutableByteSpan bytes = contents.mutate();
      for (std::uint32_t i = from; i < to; ++i) {
        const std::uint64_t position = (block_start + i - write.start) % kMagicStride;
        // Not where the last of its four bytes would lie behind the write's end.
        const std::uint64_t whole_magic_end = block_start + i - position + kMagic.size();
        if (position < kMagic.size() && whole_magic_end <= write.end) {
          bytes[i] = kMagic[position];
        }
      }
    }
    inode.pages->dirty.insert(block);
    at = block_start + to;
  }
  inodes_->note_dirty(inode);
  co_return co_await write_end(thread, inode, offset, len);
}

Task<KResult<void>> FileSystem::write_end(Thread& thread, Inode& inode, std::uint64_t offset,
                                          std::uint32_t len) {
  const std::uint64_t old_size = inode.size;
  const std::uint64_t end = offset + len;
  bool disk_size_changed = false;
  if (end > old_size) {
    inode.size = end;
    const auto last = static_cast<std::uint32_t>((end - 1) / volume_->geometry().block_size);
    // In a block that has a place no write-back will carry the size to the disk: do it now.
    if (inode.pages->find(LogicalBlock{last})->place == CachedBlock::Place::mapped) {
      inode.disk_size = std::max(inode.disk_size, end);
      disk_size_changed = true;
    }
  }
  const bool leaves_gap = offset > old_size;
  if (!disk_size_changed && !leaves_gap) co_return KResult<void>();
  constexpr std::uint32_t kCredits = 2;
  const KResult<void> started =
      co_await journal_->start(thread, HandleType::inode, kCredits, 0, inode.ino);
  if (!started) co_return started;
  KResult<void> done;
  if (leaves_gap) done = co_await zero_partial_blocks(thread, inode, old_size, offset);
  if (done) done = co_await inodes_->mark_dirty(thread, inode);
  co_await journal_->stop(thread);
  co_return done;
}

// The bytes of [first, end) that lie in blocks of which only a part is in the range become zeros:
// what was behind the end of the file may not show.
Task<KResult<void>> FileSystem::zero_partial_blocks(Thread& thread, Inode& inode,
                                                    std::uint64_t first, std::uint64_t end) {
  const std::uint32_t block_size = volume_->geometry().block_size;
  const bool starts_inside = first % block_size != 0;
  const bool ends_inside = end % block_size != 0;
  if (first / block_size == (end - 1) / block_size) {
    if (!starts_inside && !ends_inside) co_return KResult<void>();
    co_return co_await zero_in_block(thread, inode, first, end);
  }
  if (starts_inside) {
    const std::uint64_t block_end = first / block_size * block_size + block_size;
    const KResult<void> done = co_await zero_in_block(thread, inode, first, block_end);
    if (!done) co_return done;
  }
  if (!ends_inside) co_return KResult<void>();
  co_return co_await zero_in_block(thread, inode, end / block_size * block_size, end);
}

Task<KResult<void>> FileSystem::zero_in_block(Thread& thread, Inode& inode, std::uint64_t first,
                                              std::uint64_t end) {
  const std::uint32_t block_size = volume_->geometry().block_size;
  const LogicalBlock block{static_cast<std::uint32_t>(first / block_size)};
  if (inode.pages->find(block) == nullptr) {
    const KResult<Mapping> mapping = co_await extents_->lookup(inode, block, 1);
    if (!mapping) co_return std::unexpected(mapping.error());
    if (mapping->state != MappingState::written) co_return KResult<void>();  // zeros already
    const KResult<void> prepared = co_await prepare_block(inode, block, false, {});
    if (!prepared) co_return prepared;
  }
  CachedBlock& cached = *inode.pages->find(block);
  if (cached.place == CachedBlock::Place::unwritten) co_return KResult<void>();
  const MutableByteSpan bytes = cached.data.mutate();
  const auto from = static_cast<std::size_t>(first % block_size);
  std::ranges::fill(bytes.subspan(from, static_cast<std::size_t>(end - first)), std::byte{0});
  inode.pages->dirty.insert(block);
  inodes_->note_dirty(inode);
  journal_->order_data(thread, inode.ino, block, LogicalBlock{block.value() + 1});
  co_return KResult<void>();
}

Task<KResult<void>> FileSystem::write(Thread& thread, OpenFile& file, std::uint64_t offset,
                                      std::uint64_t len, WriteData data, bool append) {
  Inode& inode = *file.inode;
  CHECK(file.writable && inode.is_regular());
  const std::uint64_t block_size = volume_->geometry().block_size;
  const std::uint64_t size_max = (std::uint64_t{1} << 32) * block_size - block_size;
  while (len > 0) {
    const std::uint64_t call = std::min(len, kCallMax);
    const auto pages = static_cast<std::int64_t>(call / kPage + 1);
    co_await engine_.delay(config_.costs.syscall + pages * kCopyPage);
    std::uint64_t start = offset;
    {
      const sim::Mutex::Guard guard = co_await inode.lock.lock();
      if (append) start = inode.size;
      if (start + call > size_max) co_return std::unexpected(Errno::efbig);
      const KResult<void> updated = co_await update_times(thread, inode);
      if (!updated) co_return updated;
      PageWrite whole{.data = data, .start = start, .end = start + call};
      for (std::uint64_t at = start; at < start + call;) {
        const std::uint64_t page = at / kPage;
        const auto part =
            static_cast<std::uint32_t>(std::min((page + 1) * kPage, start + call) - at);
        if (page >= whole.folio_page + whole.folio_pages) {
          whole.folio_page = page;
          whole.folio_pages = folio_pages(*inode.pages, page, start + call - at,
                                          static_cast<std::uint32_t>(kPage / block_size));
        }
        const KResult<void> written = co_await write_page(thread, inode, at, part, whole);
        if (!written) co_return written;
        at += part;
      }
    }
    if (file.sync || file.dsync) {
      const Writeback::Range range{LogicalBlock{static_cast<std::uint32_t>(start / block_size)},
                                   (start + call + block_size - 1) / block_size};
      const KResult<void> synced =
          co_await sync_file(thread, inode, file.parent, range, !file.sync);
      if (!synced) co_return synced;
    }
    offset = start + call;
    len -= call;
  }
  co_return KResult<void>();
}

Task<std::uint64_t> FileSystem::fstat_size(Thread& /*thread*/, OpenFile& file) {
  co_await engine_.delay(config_.costs.syscall);
  file.inode->ctime_queried = true;
  co_return file.inode->size;
}

}  // namespace jbdlab::ext4
