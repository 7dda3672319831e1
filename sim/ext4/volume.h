#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "sim/ext4/alloc/percpu_counter.h"
#include "sim/ext4/buffer_cache.h"

namespace jbdlab::ext4 {

// Feature bits that decide how blocks are read and written (journal-format.md section 9).
enum : std::uint32_t {
  kCompatHasJournal = 0x4,
  kCompatResizeInode = 0x10,
  kCompatDirIndex = 0x20,
  kCompatSparseSuper2 = 0x200,
  kCompatFastCommit = 0x400,
  kCompatOrphanFile = 0x1000,
  kIncompatFiletype = 0x2,
  kIncompatNeedsRecovery = 0x4,
  kIncompatMetaBg = 0x10,
  kIncompatExtents = 0x40,
  kIncompat64bit = 0x80,
  kIncompatFlexBg = 0x200,
  kIncompatCsumSeed = 0x2000,
  kIncompatLargeDir = 0x4000,
  kIncompatInlineData = 0x8000,
  kRoCompatSparseSuper = 0x1,
  kRoCompatLargeFile = 0x2,
  kRoCompatHugeFile = 0x8,
  kRoCompatGdtCsum = 0x10,
  kRoCompatDirNlink = 0x20,
  kRoCompatExtraIsize = 0x40,
  kRoCompatBigalloc = 0x200,
  kRoCompatMetadataCsum = 0x400,
  kRoCompatOrphanPresent = 0x10000,
};

// What the superblock says of the file system's shape, checked once when it is read. Units: blocks,
// unless said otherwise. Source: struct ext4_super_block, Documentation/filesystems/ext4.
struct Geometry {
  std::uint32_t block_size = 0;  // bytes: 1024, 2048 or 4096
  std::uint32_t block_bits = 0;  // log2 of it
  std::uint64_t blocks = 0;
  std::uint64_t reserved_blocks = 0;  // for root
  std::uint32_t first_data_block = 0;
  std::uint32_t blocks_per_group = 0;
  std::uint32_t inodes = 0;
  std::uint32_t inodes_per_group = 0;
  std::uint32_t inode_size = 0;   // bytes
  std::uint32_t desc_size = 0;    // bytes of a group descriptor: 32 or 64
  std::uint32_t first_inode = 0;  // first that is not reserved: 11
  std::uint32_t groups = 0;
  std::uint32_t groups_per_flex = 1;
  std::uint32_t want_extra_isize = 0;
  std::uint32_t compat = 0, incompat = 0, ro_compat = 0;
  std::array<std::uint32_t, 4> hash_seed{};
  std::uint8_t hash_version = 0;  // of new hashed directories: 1 is half-MD4
  bool hash_unsigned = false;     // of s_flags: characters count as unsigned
  std::uint32_t csum_seed = 0;    // of all metadata checksums
  std::array<std::byte, 16> uuid{};
  std::uint32_t reserved_gdt_blocks = 0;         // behind each copy of the descriptor table
  std::array<std::uint32_t, 2> backup_groups{};  // with sparse_super2: where the copies are
  bool metadata_csum() const noexcept { return (ro_compat & kRoCompatMetadataCsum) != 0; }
  // Descriptors have a checksum: only then do their "not initialised" flags count.
  bool desc_csum() const noexcept {
    return (ro_compat & (kRoCompatMetadataCsum | kRoCompatGdtCsum)) != 0;
  }

  std::uint32_t inodes_per_block() const noexcept { return block_size / inode_size; }
  std::uint32_t inode_table_blocks() const noexcept {
    return inodes_per_group / inodes_per_block();
  }
  std::uint32_t descs_per_block() const noexcept { return block_size / desc_size; }
  std::uint32_t flex_groups() const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{groups} + groups_per_flex - 1) /
                                      groups_per_flex);
  }
  std::uint32_t gdt_blocks() const noexcept {
    return (groups + descs_per_block() - 1) / descs_per_block();
  }
  // The group begins with a copy of the superblock and the descriptor table (ext4_bg_has_super).
  bool has_super(GroupNo group) const noexcept;
  // Blocks at the start of `group` that those copies and the reserved descriptor blocks take.
  std::uint32_t base_meta_blocks(GroupNo group) const noexcept {
    return has_super(group) ? 1 + gdt_blocks() + reserved_gdt_blocks : 0;
  }
  FsBlock first_block_of(GroupNo group) const noexcept {
    return FsBlock{first_data_block + std::uint64_t{group.value()} * blocks_per_group};
  }
  GroupNo group_of(FsBlock block) const noexcept {
    return GroupNo{
        static_cast<std::uint32_t>((block.value() - first_data_block) / blocks_per_group)};
  }
  std::uint32_t offset_in_group(FsBlock block) const noexcept {
    return static_cast<std::uint32_t>((block.value() - first_data_block) % blocks_per_group);
  }
  // Blocks of `group`: fewer in the last one.
  std::uint32_t blocks_in(GroupNo group) const noexcept {
    const std::uint64_t left = blocks - first_block_of(group).value();
    return left < blocks_per_group ? static_cast<std::uint32_t>(left) : blocks_per_group;
  }
  GroupNo group_of(Ino ino) const noexcept { return GroupNo{(ino.value() - 1) / inodes_per_group}; }

  // Reads and checks the 1024 bytes at byte 1024 of the device. Errors: bad_magic, invalid (a field
  // out of range), unsupported (a feature that is not simulated; the sentence names it).
  static Result<Geometry> parse(ByteSpan superblock);
};

// One descriptor of a group, in its block of the descriptor table. Reads and writes fields in
// place; the caller holds write access to `buffer` for the writes, and calls update_checksum().
class GroupDesc {
 public:
  GroupDesc(const Geometry& geometry, GroupNo group, Buffer& buffer) noexcept
      : geometry_(&geometry),
        buffer_(&buffer),
        group_(group),
        offset_(std::size_t{group.value() % geometry.descs_per_block()} * geometry.desc_size) {}

  Buffer& buffer() const noexcept { return *buffer_; }
  FsBlock block_bitmap() const { return FsBlock{pair(0x00, 0x20)}; }
  FsBlock inode_bitmap() const { return FsBlock{pair(0x04, 0x24)}; }
  FsBlock inode_table() const { return FsBlock{pair(0x08, 0x28)}; }
  std::uint32_t free_blocks() const { return half_pair(0x0C, 0x2C); }
  std::uint32_t free_inodes() const { return half_pair(0x0E, 0x2E); }
  std::uint32_t used_dirs() const { return half_pair(0x10, 0x30); }
  std::uint32_t itable_unused() const { return half_pair(0x1C, 0x32); }
  std::uint16_t flags() const {
    return get_le<std::uint16_t>(buffer_->data.bytes(), offset_ + 0x12);
  }
  static constexpr std::uint16_t kInodeUninit = 1, kBlockUninit = 2, kInodeZeroed = 4;

  void set_free_blocks(std::uint32_t n) { set_half_pair(0x0C, 0x2C, n); }
  void set_free_inodes(std::uint32_t n) { set_half_pair(0x0E, 0x2E, n); }
  void set_used_dirs(std::uint32_t n) { set_half_pair(0x10, 0x30, n); }
  void set_itable_unused(std::uint32_t n) { set_half_pair(0x1C, 0x32, n); }
  void set_flags(std::uint16_t flags);
  // Checksums of the bitmaps, over their whole-group part; no-ops without metadata_csum.
  void set_block_bitmap_checksum(ByteSpan bitmap);
  void set_inode_bitmap_checksum(ByteSpan bitmap);
  // True also where there is no checksum to compare.
  bool block_bitmap_checksum_ok(ByteSpan bitmap) const;
  bool inode_bitmap_checksum_ok(ByteSpan bitmap) const;
  bool checksum_ok() const;
  // Checksum of the descriptor itself (crc32c with metadata_csum, crc16 with gdt_csum).
  void update_checksum();

 private:
  std::uint16_t checksum() const;
  bool wide() const noexcept { return geometry_->desc_size >= 64; }
  std::uint64_t pair(std::size_t lo, std::size_t hi) const;
  std::uint32_t half_pair(std::size_t lo, std::size_t hi) const;
  void set_half_pair(std::size_t lo, std::size_t hi, std::uint32_t value);

  const Geometry* geometry_;
  Buffer* buffer_;
  GroupNo group_;
  std::size_t offset_;
};

// The mounted file system's fixed parts: shape, superblock, descriptor table. Every part of ext4
// holds a reference to it; it outlives them.
class Volume {
 public:
  // `cpus` decides how much the counters may lag.
  Volume(const Geometry& geometry, BufferCache& buffers, unsigned cpus = 2)
      : free_blocks(cpus),
        free_inodes(cpus),
        directories(cpus),
        geometry_(geometry),
        buffers_(buffers) {}

  const Geometry& geometry() const noexcept { return geometry_; }
  BufferCache& buffers() noexcept { return buffers_; }
  GroupDesc desc(GroupNo group) noexcept {
    return {geometry_, group, *gdt_[group.value() / geometry_.descs_per_block()]};
  }
  // The block that holds the superblock (block 0, or 1 where blocks have 1024 bytes) and where in
  // it.
  Buffer& super_buffer() noexcept { return *super_; }
  std::size_t super_offset() const noexcept { return geometry_.block_size == 1024 ? 0 : 1024; }
  MutableByteSpan mutate_super() { return super_->data.mutate().subspan(super_offset(), 1024); }
  ByteSpan super() const { return super_->data.bytes().subspan(super_offset(), 1024); }
  void update_super_checksum();
  // Block of the descriptor table `index`, home location (without meta_bg: right behind the super).
  FsBlock gdt_block(std::uint32_t index) const noexcept;

  // What mount does with them: reads superblock and all descriptor blocks, sets the counters.
  // Errors: euclean (a bitmap or table outside of where it may be, a count that is too large, or a
  // bad descriptor checksum).
  Task<KResult<void>> load();

  // Counters of the mounted file system: their sums go into the superblock at unmount.
  PerCpuCounter free_blocks;
  PerCpuCounter free_inodes;
  PerCpuCounter directories;
  std::uint64_t delayed_blocks = 0;  // reserved by delayed allocation, not allocated yet

 private:
  KResult<void> check(GroupNo group);

  Geometry geometry_;
  BufferCache& buffers_;
  Buffer* super_ = nullptr;
  std::vector<Buffer*> gdt_;
};

}  // namespace jbdlab::ext4
