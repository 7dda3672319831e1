#include "sim/ext4/inode_table.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/crc32c.h"
#include "sim/ext4/inode_seed.h"

namespace jbdlab::ext4 {
namespace {

// Offsets in struct ext4_inode.
constexpr std::size_t kMode = 0x00, kUidLow = 0x02, kSizeLow = 0x04, kAtime = 0x08, kCtime = 0x0C,
                      kMtime = 0x10, kDtime = 0x14, kGidLow = 0x18, kLinks = 0x1A, kBlocksLow = 0x1C,
                      kFlags = 0x20, kVersionLow = 0x24, kBlock = 0x28, kGeneration = 0x64,
                      kSizeHigh = 0x6C, kBlocksHigh = 0x74, kUidHigh = 0x78, kGidHigh = 0x7A,
                      kChecksumLow = 0x7C, kExtraSize = 0x80, kChecksumHigh = 0x82,
                      kCtimeExtra = 0x84, kMtimeExtra = 0x88, kAtimeExtra = 0x8C, kCrtime = 0x90,
                      kCrtimeExtra = 0x94, kVersionHigh = 0x98;
constexpr std::size_t kGoodOldSize = 128;
constexpr std::uint32_t kHugeFileFlag = 0x4'0000;  // i_blocks counts blocks, not sectors

// True if the field at `offset` lies inside the extra part that this inode uses.
bool has_extra(const Inode& inode, std::size_t offset, std::size_t size) {
  return offset + size <= kGoodOldSize + inode.extra_isize;
}

// The whole inode, its own checksum fields counted as zero.
std::uint32_t checksum_of(const Geometry& geometry, ByteSpan raw, const Inode& inode) {
  constexpr std::array<std::byte, 2> kZero{};
  std::uint32_t crc = inode_checksum_seed(geometry, inode.ino, inode.generation);
  crc = crc32c(crc, raw.first(kChecksumLow));
  crc = crc32c(crc, kZero);
  crc = crc32c(crc, raw.subspan(kChecksumLow + 2, kGoodOldSize - kChecksumLow - 2));
  if (raw.size() == kGoodOldSize) return crc;
  if (!has_extra(inode, kChecksumHigh, 2)) return crc32c(crc, raw.subspan(kGoodOldSize));
  crc = crc32c(crc, raw.subspan(kGoodOldSize, kChecksumHigh - kGoodOldSize));
  crc = crc32c(crc, kZero);
  return crc32c(crc, raw.subspan(kChecksumHigh + 2));
}

bool has_high_checksum(ByteSpan raw, const Inode& inode) {
  return raw.size() > kGoodOldSize && has_extra(inode, kChecksumHigh, 2);
}

Timestamp read_time(ByteSpan raw, const Inode& inode, std::size_t at, std::size_t extra_at) {
  Timestamp time{static_cast<std::int32_t>(get_le<std::uint32_t>(raw, at)), 0};
  if (has_extra(inode, extra_at, 4)) {
    const auto extra = get_le<std::uint32_t>(raw, extra_at);
    time.sec += std::int64_t{extra & 3} << 32;
    time.nsec = extra >> 2;
  }
  return time;
}

void write_time(MutableByteSpan raw, const Inode& inode, std::size_t at, std::size_t extra_at,
                Timestamp time) {
  set_le(raw, at, static_cast<std::uint32_t>(time.sec));
  if (!has_extra(inode, extra_at, 4)) return;
  const std::int64_t low = static_cast<std::int32_t>(static_cast<std::uint32_t>(time.sec));
  const auto epoch = static_cast<std::uint32_t>((time.sec - low) >> 32) & 3;
  set_le(raw, extra_at, epoch | time.nsec << 2);
}

}  // namespace

KResult<void> read_inode(const Geometry& geometry, ByteSpan raw, Inode& inode) {
  CHECK(raw.size() == geometry.inode_size);
  const auto u16 = [&](std::size_t at) { return get_le<std::uint16_t>(raw, at); };
  const auto u32 = [&](std::size_t at) { return get_le<std::uint32_t>(raw, at); };
  inode.generation = u32(kGeneration);
  inode.extra_isize = raw.size() > kGoodOldSize ? u16(kExtraSize) : 0;
  if (inode.extra_isize % 4 != 0 || kGoodOldSize + inode.extra_isize > raw.size()) {
    return std::unexpected(Errno::euclean);
  }
  if (geometry.metadata_csum()) {
    const std::uint32_t want = checksum_of(geometry, raw, inode);
    std::uint32_t have = u16(kChecksumLow);
    std::uint32_t mask = 0xFFFF;
    if (has_high_checksum(raw, inode)) {
      have |= std::uint32_t{u16(kChecksumHigh)} << 16;
      mask = 0xFFFF'FFFF;
    }
    if (have != (want & mask)) return std::unexpected(Errno::euclean);
  }
  inode.mode = u16(kMode);
  inode.uid = u16(kUidLow) | std::uint32_t{u16(kUidHigh)} << 16;
  inode.gid = u16(kGidLow) | std::uint32_t{u16(kGidHigh)} << 16;
  inode.dtime = u32(kDtime);
  inode.links = u16(kLinks);
  inode.flags = u32(kFlags);
  inode.size = inode.disk_size = u32(kSizeLow) | std::uint64_t{u32(kSizeHigh)} << 32;
  inode.sectors = u32(kBlocksLow) | std::uint64_t{u16(kBlocksHigh)} << 32;
  if ((inode.flags & kHugeFileFlag) != 0) inode.sectors *= geometry.block_size / 512;
  inode.version = u32(kVersionLow);
  if (has_extra(inode, kVersionHigh, 4)) {
    inode.version |= std::uint64_t{u32(kVersionHigh)} << 32;
  }
  inode.atime = read_time(raw, inode, kAtime, kAtimeExtra);
  inode.ctime = read_time(raw, inode, kCtime, kCtimeExtra);
  inode.mtime = read_time(raw, inode, kMtime, kMtimeExtra);
  if (has_extra(inode, kCrtime, 4)) inode.crtime = read_time(raw, inode, kCrtime, kCrtimeExtra);
  std::ranges::copy(raw.subspan(kBlock, inode.block.size()), inode.block.begin());
  return {};
}

bool write_inode(const Geometry& geometry, MutableByteSpan raw, const Inode& inode, bool fresh) {
  CHECK(raw.size() == geometry.inode_size);
  const auto u16 = [&](std::size_t at, std::uint64_t value) {
    set_le(raw, at, static_cast<std::uint16_t>(value));
  };
  const auto u32 = [&](std::size_t at, std::uint64_t value) {
    set_le(raw, at, static_cast<std::uint32_t>(value));
  };
  if (fresh) std::ranges::fill(raw, std::byte{0});
  u16(kMode, inode.mode);
  u16(kUidLow, inode.uid);
  u16(kUidHigh, inode.uid >> 16);
  u16(kGidLow, inode.gid);
  u16(kGidHigh, inode.gid >> 16);
  u32(kDtime, inode.dtime);
  u16(kLinks, inode.links);
  u32(kFlags, inode.flags);
  u32(kGeneration, inode.generation);
  const std::uint64_t old_size = get_le<std::uint32_t>(raw, kSizeLow) |
                                 std::uint64_t{get_le<std::uint32_t>(raw, kSizeHigh)} << 32;
  u32(kSizeLow, inode.disk_size);
  u32(kSizeHigh, inode.disk_size >> 32);
  u32(kBlocksLow, inode.sectors);  // files large enough for the huge_file form do not occur
  u16(kBlocksHigh, inode.sectors >> 32);
  u32(kVersionLow, inode.version);
  if (raw.size() > kGoodOldSize) u16(kExtraSize, inode.extra_isize);
  if (has_extra(inode, kVersionHigh, 4)) u32(kVersionHigh, inode.version >> 32);
  write_time(raw, inode, kAtime, kAtimeExtra, inode.atime);
  write_time(raw, inode, kCtime, kCtimeExtra, inode.ctime);
  write_time(raw, inode, kMtime, kMtimeExtra, inode.mtime);
  if (has_extra(inode, kCrtime, 4)) write_time(raw, inode, kCrtime, kCrtimeExtra, inode.crtime);
  std::ranges::copy(inode.block, raw.subspan(kBlock, inode.block.size()).begin());
  if (geometry.metadata_csum()) {
    const std::uint32_t crc = checksum_of(geometry, raw, inode);
    u16(kChecksumLow, crc);
    if (has_high_checksum(raw, inode)) u16(kChecksumHigh, crc >> 16);
  }
  return old_size != inode.disk_size;
}

InodeTable::InodeTable(sim::Engine& engine, Volume& volume, JournalDriver& journal)
    : engine_(engine), volume_(volume), journal_(journal) {}

InodeTable::~InodeTable() = default;

InodeTable::Place InodeTable::place_of(Ino ino) {
  const Geometry& geometry = volume_.geometry();
  const std::uint32_t index = (ino.value() - 1) % geometry.inodes_per_group;
  const FsBlock table = volume_.desc(geometry.group_of(ino)).inode_table();
  const std::uint32_t per_block = geometry.inodes_per_block();
  return {FsBlock{table.value() + index / per_block}, index % per_block * geometry.inode_size};
}

Inode* InodeTable::find(Ino ino) noexcept {
  const std::size_t page = ino.value() / kPageInodes;
  if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
  return (*pages_[page])[ino.value() % kPageInodes].get();
}

std::unique_ptr<Inode>& InodeTable::slot(Ino ino) {
  const std::size_t page = ino.value() / kPageInodes;
  if (page >= pages_.size()) pages_.resize(page + 1);
  if (pages_[page] == nullptr) pages_[page] = std::make_unique<Page>();
  return (*pages_[page])[ino.value() % kPageInodes];
}

Inode& InodeTable::create(Ino ino) {
  std::unique_ptr<Inode>& inode = slot(ino);
  CHECK(inode == nullptr);
  inode = std::make_unique<Inode>(ino, engine_);
  inode->fresh = true;
  inode->group = volume_.geometry().group_of(ino);
  return *inode;
}

void InodeTable::forget(Ino ino) {
  std::unique_ptr<Inode>& inode = slot(ino);
  note_clean(*inode);
  inode.reset();
}

// The block of the table that holds the inode. For a new inode whose neighbours in the block are
// all unused nothing is read: the block becomes zeros (ext4_get_inode_loc_noinmem and its in_mem
// case), which needs the inode bitmap in memory.
Task<Buffer*> InodeTable::table_block(Inode& inode) {
  const Place place = place_of(inode.ino);
  BufferCache& buffers = volume_.buffers();
  Buffer& buffer = buffers.get(place.block);
  if (buffer.uptodate) co_return &buffer;
  if (inode.fresh && !buffer.locked) {
    const Geometry& geometry = volume_.geometry();
    const FsBlock bitmap_block = volume_.desc(geometry.group_of(inode.ino)).inode_bitmap();
    const Buffer* const bitmap = buffers.find(bitmap_block);
    if (bitmap != nullptr && bitmap->uptodate) {
      const std::uint32_t own = (inode.ino.value() - 1) % geometry.inodes_per_group;
      const std::uint32_t first = own / geometry.inodes_per_block() * geometry.inodes_per_block();
      const ByteSpan bits = bitmap->data.bytes();
      bool alone = true;
      for (std::uint32_t i = first; i < first + geometry.inodes_per_block(); ++i) {
        const auto byte = std::to_integer<unsigned>(bits[i / 8]);
        if (i != own && (byte >> (i % 8) & 1) != 0) alone = false;
      }
      if (alone) {
        buffer.data = BlockRef::zeros(geometry.block_size);
        buffer.uptodate = true;
        co_return &buffer;
      }
    }
  }
  co_return co_await buffers.read(place.block);
}

Task<KResult<Inode*>> InodeTable::get(Thread& /*thread*/, Ino ino) {
  if (Inode* const known = find(ino)) co_return known;
  if (ino.value() == 0 || ino.value() > volume_.geometry().inodes) {
    co_return std::unexpected(Errno::euclean);
  }
  auto inode = std::make_unique<Inode>(ino, engine_);
  Buffer* const buffer = co_await table_block(*inode);
  if (Inode* const known = find(ino)) co_return known;  // somebody was faster
  const ByteSpan raw =
      buffer->data.bytes().subspan(place_of(ino).offset, volume_.geometry().inode_size);
  const KResult<void> read = read_inode(volume_.geometry(), raw, *inode);
  if (!read) co_return std::unexpected(read.error());
  if (inode->links == 0) co_return std::unexpected(Errno::euclean);
  inode->group = volume_.geometry().group_of(ino);
  // Nobody knows when it was changed last: as if by whatever has not been committed yet.
  const jbd2::Journal& journal = journal_.machine();
  const jbd2::Transaction* const open =
      journal.running() != nullptr ? journal.running() : journal.committing();
  inode->sync_tid = inode->datasync_tid = open != nullptr ? open->tid : journal.commit_sequence();
  std::unique_ptr<Inode>& place = slot(ino);
  place = std::move(inode);
  co_return place.get();
}

void InodeTable::touch(const Thread& thread, Inode& inode, bool datasync) {
  inode.sync_tid = journal_.tid(thread);
  if (datasync) inode.datasync_tid = inode.sync_tid;
}

Task<KResult<void>> InodeTable::mark_dirty(Thread& thread, Inode& inode) {
  Buffer* const buffer = co_await table_block(inode);
  co_await journal_.get_write_access(thread, *buffer);
  const MutableByteSpan raw =
      buffer->data.mutate().subspan(place_of(inode.ino).offset, volume_.geometry().inode_size);
  const bool size_changed =
      write_inode(volume_.geometry(), raw, inode, std::exchange(inode.fresh, false));
  journal_.dirty_metadata(thread, *buffer);
  touch(thread, inode, size_changed);
  co_return KResult<void>();
}

void InodeTable::note_dirty(Inode& inode) {
  if (inode.dirty_order != 0) return;
  inode.dirty_order = ++last_dirty_order_;
  inode.dirtied = engine_.now();
  dirty_.emplace(inode.dirty_order, &inode);
}

void InodeTable::note_clean(Inode& inode) {
  if (inode.dirty_order != 0) dirty_.erase(std::exchange(inode.dirty_order, 0));
}

std::vector<Inode*> InodeTable::dirty_inodes(Time since) const {
  std::vector<Inode*> inodes;
  for (const auto& [order, inode] : dirty_) {
    if (inode->dirtied > since) break;  // and those behind it became so later still
    inodes.push_back(inode);
  }
  return inodes;
}

Task<KResult<void>> InodeTable::dirty(Thread& thread, Inode& inode) {
  note_dirty(inode);
  constexpr std::uint32_t kCredits = 2;
  const KResult<void> started =
      co_await journal_.start(thread, HandleType::inode, kCredits, 0, inode.ino);
  if (!started) co_return started;
  const KResult<void> done = co_await mark_dirty(thread, inode);
  co_await journal_.stop(thread);
  co_return done;
}

}  // namespace jbdlab::ext4
