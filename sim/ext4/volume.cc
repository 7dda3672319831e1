#include "sim/ext4/volume.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::size_t kSuperSize = 1024;
constexpr std::size_t kSuperChecksum = 0x3FC;
constexpr std::uint32_t kMetadataCsumCrc32c = 1;  // s_checksum_type

// ----- features -----

struct FeatureName {
  std::uint32_t bit;
  std::string_view name;
};
struct FeatureWord {
  char letter;  // of an unknown bit's name: FEATURE_C12
  std::uint32_t simulated;
  std::uint32_t needed;
  std::span<const FeatureName> names;
};

// Names as dumpe2fs prints them. What is simulated is what mke2fs makes by default, and what may be
// left away from that.
constexpr FeatureName kCompatNames[] = {{0x1, "dir_prealloc"},
                                        {0x2, "imagic_inodes"},
                                        {kCompatHasJournal, "has_journal"},
                                        {0x8, "ext_attr"},
                                        {kCompatResizeInode, "resize_inode"},
                                        {kCompatDirIndex, "dir_index"},
                                        {0x40, "lazy_bg"},
                                        {0x100, "snapshot_bitmap"},
                                        {kCompatSparseSuper2, "sparse_super2"},
                                        {kCompatFastCommit, "fast_commit"},
                                        {0x800, "stable_inodes"},
                                        {kCompatOrphanFile, "orphan_file"}};
constexpr FeatureName kIncompatNames[] = {{0x1, "compression"},
                                          {kIncompatFiletype, "filetype"},
                                          {kIncompatNeedsRecovery, "needs_recovery"},
                                          {0x8, "journal_dev"},
                                          {kIncompatMetaBg, "meta_bg"},
                                          {kIncompatExtents, "extent"},
                                          {kIncompat64bit, "64bit"},
                                          {0x100, "mmp"},
                                          {kIncompatFlexBg, "flex_bg"},
                                          {0x400, "ea_inode"},
                                          {0x1000, "dirdata"},
                                          {kIncompatCsumSeed, "metadata_csum_seed"},
                                          {kIncompatLargeDir, "large_dir"},
                                          {kIncompatInlineData, "inline_data"},
                                          {0x10000, "encrypt"},
                                          {0x20000, "casefold"}};
constexpr FeatureName kRoCompatNames[] = {{kRoCompatSparseSuper, "sparse_super"},
                                          {kRoCompatLargeFile, "large_file"},
                                          {kRoCompatHugeFile, "huge_file"},
                                          {kRoCompatGdtCsum, "uninit_bg"},
                                          {kRoCompatDirNlink, "dir_nlink"},
                                          {kRoCompatExtraIsize, "extra_isize"},
                                          {0x100, "quota"},
                                          {kRoCompatBigalloc, "bigalloc"},
                                          {kRoCompatMetadataCsum, "metadata_csum"},
                                          {0x800, "replica"},
                                          {0x1000, "read-only"},
                                          {0x2000, "project"},
                                          {0x4000, "shared_blocks"},
                                          {0x8000, "verity"},
                                          {kRoCompatOrphanPresent, "orphan_present"}};
constexpr FeatureWord kCompatWord{'C',
                                  kCompatHasJournal | 0x8 | kCompatResizeInode | kCompatDirIndex |
                                      kCompatSparseSuper2 | kCompatFastCommit,
                                  0, kCompatNames};
constexpr FeatureWord kIncompatWord{'I',
                                    kIncompatFiletype | kIncompatNeedsRecovery | kIncompatExtents |
                                        kIncompat64bit | kIncompatFlexBg | kIncompatCsumSeed,
                                    kIncompatFiletype | kIncompatExtents, kIncompatNames};
constexpr FeatureWord kRoCompatWord{'R',
                                    kRoCompatSparseSuper | kRoCompatLargeFile | kRoCompatHugeFile |
                                        kRoCompatGdtCsum | kRoCompatDirNlink | kRoCompatExtraIsize |
                                        kRoCompatMetadataCsum,
                                    0, kRoCompatNames};

std::string names_of(std::uint32_t bits, const FeatureWord& word) {
  std::string out;
  for (std::uint32_t rest = bits; rest != 0; rest &= rest - 1) {
    const std::uint32_t bit = rest & (~rest + 1);
    const auto known = std::ranges::find(word.names, bit, &FeatureName::bit);
    if (!out.empty()) out += ", ";
    out += known != word.names.end()
               ? std::string{known->name}
               : fmt::format("FEATURE_{}{}", word.letter, std::countr_zero(bit));
  }
  return out;
}

Result<void> check_features(const Geometry& g) {
  std::string refused;
  std::string missing;
  const auto add = [](std::string& to, const std::string& names) {
    if (!to.empty() && !names.empty()) to += ", ";
    to += names;
  };
  for (const auto& [bits, word] :
       {std::pair{g.compat, &kCompatWord}, std::pair{g.incompat, &kIncompatWord},
        std::pair{g.ro_compat, &kRoCompatWord}}) {
    add(refused, names_of(bits & ~word->simulated, *word));
    add(missing, names_of(~bits & word->needed, *word));
  }
  if (!refused.empty()) {
    return fail(Errc::unsupported, fmt::format("feature not simulated: {}", refused));
  }
  if (!missing.empty()) {
    return fail(Errc::unsupported,
                fmt::format("a file system without the feature {} is not simulated", missing));
  }
  return {};
}

// ----- superblock -----

// Little-endian fields of the superblock, by the offsets of struct ext4_super_block.
class SuperFields {
 public:
  explicit SuperFields(ByteSpan raw) : raw_(raw) {}
  std::uint8_t u8(std::size_t offset) const { return get_le<std::uint8_t>(raw_, offset); }
  std::uint16_t u16(std::size_t offset) const { return get_le<std::uint16_t>(raw_, offset); }
  std::uint32_t u32(std::size_t offset) const { return get_le<std::uint32_t>(raw_, offset); }
  // A 64-bit count whose upper half counts only on file systems with 64-bit block numbers.
  std::uint64_t split(std::size_t low, std::size_t high, bool wide) const {
    return u32(low) | (wide ? std::uint64_t{u32(high)} << 32 : 0);
  }

 private:
  ByteSpan raw_;
};

std::unexpected<Error> out_of_range(std::string_view field, std::uint64_t found,
                                    std::string_view expected, std::size_t offset) {
  return fail(Errc::invalid,
              fmt::format("superblock: {} is {}, expected {}", field, found, expected),
              kSuperSize + offset);
}

Result<void> check_checksum(ByteSpan raw, const SuperFields& field, const Geometry& g) {
  if (!g.metadata_csum()) return {};
  if (field.u8(0x175) != kMetadataCsumCrc32c) {
    return out_of_range("checksum type", field.u8(0x175), "1 (crc32c)", 0x175);
  }
  const std::uint32_t want = crc32c(~0U, raw.first(kSuperChecksum));
  if (const std::uint32_t found = field.u32(kSuperChecksum); found != want) {
    return fail(Errc::checksum,
                fmt::format("superblock: checksum is {:#010x}, expected {:#010x}", found, want),
                kSuperSize + kSuperChecksum);
  }
  return {};
}

// Sizes of blocks, inodes and descriptors.
Result<void> parse_sizes(const SuperFields& field, Geometry& g) {
  const std::uint32_t log_block_size = field.u32(0x18);
  if (log_block_size > 2) {
    return out_of_range("log2 of the block size in KiB", log_block_size, "0 to 2", 0x18);
  }
  g.block_bits = 10 + log_block_size;
  g.block_size = 1U << g.block_bits;
  if (field.u32(0x1C) != log_block_size) {
    return out_of_range("log2 of the cluster size in KiB", field.u32(0x1C),
                        "that of the block size", 0x1C);
  }
  g.inode_size = field.u16(0x58);
  if (!std::has_single_bit(g.inode_size) || g.inode_size < 128 || g.inode_size > g.block_size) {
    return out_of_range("inode size", g.inode_size, "a power of two from 128 to the block size",
                        0x58);
  }
  if (g.inode_size > 128) {
    // Room for the fields that Linux knows, unless the superblock asks for more.
    g.want_extra_isize = 32;
    if ((g.ro_compat & kRoCompatExtraIsize) != 0) {
      g.want_extra_isize = std::max(
          {g.want_extra_isize, std::uint32_t{field.u16(0x15C)}, std::uint32_t{field.u16(0x15E)}});
    }
    if (128 + g.want_extra_isize > g.inode_size) {
      return out_of_range("wanted extra inode size", g.want_extra_isize, "room in the inode",
                          0x15E);
    }
  }
  g.desc_size = 32;
  if ((g.incompat & kIncompat64bit) != 0) {
    g.desc_size = field.u16(0xFE);
    if (!std::has_single_bit(g.desc_size) || g.desc_size < 64 || g.desc_size > 1024) {
      return out_of_range("group descriptor size", g.desc_size, "a power of two from 64 to 1024",
                          0xFE);
    }
  }
  return {};
}

// How many blocks and inodes there are, and how they are divided into groups.
Result<void> parse_groups(const SuperFields& field, Geometry& g) {
  const bool wide = (g.incompat & kIncompat64bit) != 0;
  g.first_data_block = field.u32(0x14);
  if (g.first_data_block != (g.block_size == 1024 ? 1U : 0U)) {
    return out_of_range("first data block", g.first_data_block,
                        "1 with blocks of 1024 bytes, else 0", 0x14);
  }
  g.blocks_per_group = field.u32(0x20);
  if (g.blocks_per_group < 256 || g.blocks_per_group > 8 * g.block_size ||
      g.blocks_per_group % 8 != 0) {
    return out_of_range("blocks per group", g.blocks_per_group,
                        "a multiple of 8 from 256 to the bits of a block", 0x20);
  }
  if (field.u32(0x24) != g.blocks_per_group) {
    return out_of_range("clusters per group", field.u32(0x24), "the blocks per group", 0x24);
  }
  g.inodes_per_group = field.u32(0x28);
  if (g.inodes_per_group == 0 || g.inodes_per_group > 8 * g.block_size ||
      g.inodes_per_group % 8 != 0 || g.inodes_per_group % g.inodes_per_block() != 0) {
    return out_of_range("inodes per group", g.inodes_per_group,
                        "whole inode table blocks, at most the bits of a block", 0x28);
  }
  g.blocks = field.split(0x4, 0x150, wide);
  if (g.blocks <= g.first_data_block || g.blocks > std::uint64_t{1} << 48) {
    return out_of_range("block count", g.blocks, "at least one group and at most 2^48", 0x4);
  }
  const std::uint64_t groups =
      (g.blocks - g.first_data_block + g.blocks_per_group - 1) / g.blocks_per_group;
  if (groups > ~0U / g.inodes_per_group) {
    return out_of_range("block count", g.blocks, "fewer groups", 0x4);
  }
  g.groups = static_cast<std::uint32_t>(groups);
  g.inodes = field.u32(0x0);
  if (g.inodes != g.groups * g.inodes_per_group) {
    return out_of_range("inode count", g.inodes, "inodes per group times groups", 0x0);
  }
  g.reserved_blocks = field.split(0x8, 0x154, wide);
  if (g.reserved_blocks > g.blocks) {
    return out_of_range("reserved block count", g.reserved_blocks, "at most the block count", 0x8);
  }
  g.first_inode = field.u32(0x54);
  if (g.first_inode < 11 || g.first_inode > g.inodes_per_group) {
    return out_of_range("first inode", g.first_inode, "11, or at most the inodes of a group", 0x54);
  }
  if ((g.incompat & kIncompatFlexBg) != 0) {
    const std::uint32_t log_flex = field.u8(0x174);
    if (log_flex > 31) {
      return out_of_range("log2 of the groups per flex group", log_flex, "at most 31", 0x174);
    }
    g.groups_per_flex = 1U << log_flex;
  }
  g.reserved_gdt_blocks = field.u16(0xCE);
  g.backup_groups = {field.u32(0x24C), field.u32(0x250)};
  if (g.base_meta_blocks(GroupNo{0}) >= g.blocks_in(GroupNo{0})) {
    return out_of_range("reserved descriptor blocks", g.reserved_gdt_blocks,
                        "fewer than fit into a group", 0xCE);
  }
  return {};
}

// ----- checksums of descriptors -----

// CRC-16 as in ARC: polynomial 0x8005 reflected; `crc` is what came before.
constexpr std::uint16_t crc16(std::uint16_t crc, ByteSpan bytes) noexcept {
  constexpr auto kTable = [] {
    std::array<std::uint16_t, 256> table{};
    for (unsigned i = 0; i < 256; ++i) {
      unsigned value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xA001U : 0U);
      table[i] = static_cast<std::uint16_t>(value);
    }
    return table;
  }();
  for (const std::byte byte : bytes) {
    crc = static_cast<std::uint16_t>((crc >> 8) ^
                                     kTable[(crc ^ std::to_integer<unsigned>(byte)) & 0xFF]);
  }
  return crc;
}

constexpr std::size_t kDescChecksum = 0x1E;
constexpr std::size_t kDescNarrow = 0x20;

// Checksum of a bitmap, over the part of it that stands for blocks or inodes.
std::uint32_t bitmap_checksum(const Geometry& g, ByteSpan bitmap, std::uint32_t bits) {
  return crc32c(g.csum_seed, bitmap.first(bits / 8));
}

}  // namespace

bool Geometry::has_super(GroupNo group) const noexcept {
  const std::uint32_t n = group.value();
  if (n == 0) return true;
  if ((compat & kCompatSparseSuper2) != 0) return n == backup_groups[0] || n == backup_groups[1];
  if (n == 1 || (ro_compat & kRoCompatSparseSuper) == 0) return true;
  return std::ranges::any_of(std::array{3U, 5U, 7U}, [n](std::uint32_t base) {
    std::uint64_t power = base;
    while (power < n) power *= base;
    return power == n;
  });
}

Result<Geometry> Geometry::parse(ByteSpan superblock) {
  if (superblock.size() < kSuperSize) {
    return fail(Errc::truncated,
                fmt::format("superblock: {} bytes, expected {}", superblock.size(), kSuperSize));
  }
  const ByteSpan raw = superblock.first(kSuperSize);
  const SuperFields field{raw};
  if (const std::uint16_t magic = field.u16(0x38); magic != 0xEF53) {
    return fail(
        Errc::bad_magic,
        fmt::format("superblock: magic is {:#06x}, expected 0xef53 (not an ext4 file system)",
                    magic),
        kSuperSize + 0x38);
  }
  if (field.u32(0x4C) != 1) return out_of_range("revision", field.u32(0x4C), "1", 0x4C);
  Geometry g;
  g.compat = field.u32(0x5C);
  g.incompat = field.u32(0x60);
  g.ro_compat = field.u32(0x64);
  if (auto ok = check_features(g); !ok) return std::unexpected(ok.error());
  if (auto ok = check_checksum(raw, field, g); !ok) return std::unexpected(ok.error());
  if (auto ok = parse_sizes(field, g); !ok) return std::unexpected(ok.error());
  if (auto ok = parse_groups(field, g); !ok) return std::unexpected(ok.error());
  std::ranges::copy(raw.subspan(0x68, 16), g.uuid.begin());
  for (std::size_t i = 0; i < g.hash_seed.size(); ++i) g.hash_seed[i] = field.u32(0xEC + 4 * i);
  g.hash_version = field.u8(0xFC);
  if ((g.compat & kCompatDirIndex) != 0 && g.hash_version > 2) {
    return out_of_range("hash of directories", g.hash_version, "0, 1 or 2", 0xFC);
  }
  // Without either flag the hash is signed, as on the machine where Linux sets the flag.
  g.hash_unsigned = (field.u32(0x160) & 0x2) != 0;
  g.csum_seed = (g.incompat & kIncompatCsumSeed) != 0 ? field.u32(0x270) : crc32c(~0U, g.uuid);
  return g;
}

std::uint64_t GroupDesc::pair(std::size_t lo, std::size_t hi) const {
  const ByteSpan raw = buffer_->data.bytes();
  const std::uint64_t low = get_le<std::uint32_t>(raw, offset_ + lo);
  if (!wide()) return low;
  return low | std::uint64_t{get_le<std::uint32_t>(raw, offset_ + hi)} << 32;
}

std::uint32_t GroupDesc::half_pair(std::size_t lo, std::size_t hi) const {
  const ByteSpan raw = buffer_->data.bytes();
  const std::uint32_t low = get_le<std::uint16_t>(raw, offset_ + lo);
  if (!wide()) return low;
  return low | std::uint32_t{get_le<std::uint16_t>(raw, offset_ + hi)} << 16;
}

void GroupDesc::set_half_pair(std::size_t lo, std::size_t hi, std::uint32_t value) {
  const MutableByteSpan raw = buffer_->data.mutate();
  set_le<std::uint16_t>(raw, offset_ + lo, static_cast<std::uint16_t>(value));
  if (wide()) set_le<std::uint16_t>(raw, offset_ + hi, static_cast<std::uint16_t>(value >> 16));
}

void GroupDesc::set_flags(std::uint16_t flags) {
  set_le<std::uint16_t>(buffer_->data.mutate(), offset_ + 0x12, flags);
}

void GroupDesc::set_block_bitmap_checksum(ByteSpan bitmap) {
  if (!geometry_->metadata_csum()) return;
  set_half_pair(0x18, 0x38, bitmap_checksum(*geometry_, bitmap, geometry_->blocks_per_group));
}

void GroupDesc::set_inode_bitmap_checksum(ByteSpan bitmap) {
  if (!geometry_->metadata_csum()) return;
  set_half_pair(0x1A, 0x3A, bitmap_checksum(*geometry_, bitmap, geometry_->inodes_per_group));
}

bool GroupDesc::block_bitmap_checksum_ok(ByteSpan bitmap) const {
  if (!geometry_->metadata_csum()) return true;
  const std::uint32_t mask = wide() ? ~0U : 0xFFFFU;
  return half_pair(0x18, 0x38) ==
         (bitmap_checksum(*geometry_, bitmap, geometry_->blocks_per_group) & mask);
}

bool GroupDesc::inode_bitmap_checksum_ok(ByteSpan bitmap) const {
  if (!geometry_->metadata_csum()) return true;
  const std::uint32_t mask = wide() ? ~0U : 0xFFFFU;
  return half_pair(0x1A, 0x3A) ==
         (bitmap_checksum(*geometry_, bitmap, geometry_->inodes_per_group) & mask);
}

std::uint16_t GroupDesc::checksum() const {
  const ByteSpan raw = buffer_->data.bytes().subspan(offset_, geometry_->desc_size);
  std::array<std::byte, 4> number{};
  put_le<std::uint32_t, 0>(std::span<std::byte, 4>{number}, group_.value());
  const ByteSpan head = raw.first(kDescChecksum);
  const ByteSpan tail = raw.subspan(kDescNarrow);  // empty in a descriptor of 32 bytes
  if (geometry_->metadata_csum()) {
    static constexpr std::array<std::byte, 2> kNoChecksum{};
    std::uint32_t crc = crc32c(geometry_->csum_seed, number);
    crc = crc32c(crc32c(crc, head), kNoChecksum);
    return static_cast<std::uint16_t>(crc32c(crc, tail));
  }
  std::uint16_t crc = crc16(0xFFFF, geometry_->uuid);
  crc = crc16(crc16(crc, number), head);
  return crc16(crc, tail);
}

bool GroupDesc::checksum_ok() const {
  if (!geometry_->desc_csum()) return true;
  return get_le<std::uint16_t>(buffer_->data.bytes(), offset_ + kDescChecksum) == checksum();
}

void GroupDesc::update_checksum() {
  if (!geometry_->desc_csum()) return;
  const std::uint16_t value = checksum();
  set_le<std::uint16_t>(buffer_->data.mutate(), offset_ + kDescChecksum, value);
}

void Volume::update_super_checksum() {
  if (!geometry_.metadata_csum()) return;
  const MutableByteSpan raw = mutate_super();
  set_le<std::uint32_t>(raw, kSuperChecksum, crc32c(~0U, raw.first(kSuperChecksum)));
}

FsBlock Volume::gdt_block(std::uint32_t index) const noexcept {
  return FsBlock{std::uint64_t{geometry_.first_data_block} + 1 + index};
}

// Source of the rules: ext4_check_descriptors of fs/ext4/super.c; the counts are our addition.
KResult<void> Volume::check(GroupNo group) {
  const Geometry& g = geometry_;
  const GroupDesc d = desc(group);
  // Metadata may lie anywhere with flex_bg, and behind the copies of the superblock otherwise.
  const bool anywhere = (g.incompat & kIncompatFlexBg) != 0;
  const std::uint64_t first =
      anywhere ? g.first_data_block + 1 + g.gdt_blocks() : g.first_block_of(group).value();
  const std::uint64_t end =
      anywhere ? g.blocks : g.first_block_of(group).value() + g.blocks_in(group);
  const auto inside = [&](FsBlock block, std::uint32_t len) {
    return block.value() >= first && block.value() < end && len <= end - block.value();
  };
  const bool sound = inside(d.block_bitmap(), 1) && inside(d.inode_bitmap(), 1) &&
                     inside(d.inode_table(), g.inode_table_blocks()) && d.checksum_ok() &&
                     d.free_blocks() <= g.blocks_in(group) &&
                     d.free_inodes() <= g.inodes_per_group && d.used_dirs() <= g.inodes_per_group &&
                     d.itable_unused() <= g.inodes_per_group;
  if (!sound) return std::unexpected(Errno::euclean);
  return {};
}

Task<KResult<void>> Volume::load() {
  const FsBlock super_block{geometry_.first_data_block};
  super_ = co_await buffers_.read(super_block);
  gdt_.clear();
  if (gdt_block(geometry_.gdt_blocks() - 1).value() >= geometry_.blocks) {
    co_return std::unexpected(Errno::euclean);
  }
  for (std::uint32_t i = 0; i < geometry_.gdt_blocks(); ++i) {
    Buffer* const buffer = co_await buffers_.read(gdt_block(i));
    gdt_.push_back(buffer);
  }
  std::uint64_t blocks = 0;
  std::uint64_t inodes = 0;
  std::uint64_t dirs = 0;
  for (std::uint32_t n = 0; n < geometry_.groups; ++n) {
    const KResult<void> sound = check(GroupNo{n});
    if (!sound) co_return sound;
    const GroupDesc d = desc(GroupNo{n});
    blocks += d.free_blocks();
    inodes += d.free_inodes();
    dirs += d.used_dirs();
  }
  free_blocks.set(blocks);
  free_inodes.set(inodes);
  directories.set(dirs);
  delayed_blocks = 0;
  co_return KResult<void>{};
}

}  // namespace jbdlab::ext4
