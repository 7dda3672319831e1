#include "analyze/ext4_superblock.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/crc32c.h"

namespace jbdlab::analyze {
namespace {

constexpr std::uint16_t kMagic = 0xEF53;
constexpr std::uint16_t kStateValid = 1;
constexpr std::uint16_t kStateErrors = 2;
constexpr std::uint16_t kOldInodeSize = 128;
constexpr std::uint32_t kDynamicRevision = 1;

Uuid uuid_at(std::span<const std::byte, 16> from) {
  Uuid uuid;
  std::copy(from.begin(), from.end(), uuid.begin());
  return uuid;
}

}  // namespace

std::string to_string(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", std::to_integer<unsigned>(uuid[i]));
  }
  return text;
}

Result<Ext4Superblock> Ext4Superblock::parse(ByteSpan bytes) {
  if (bytes.size() < kSize) {
    return fail(Errc::truncated,
                fmt::format("expected a superblock of {} bytes at byte {}, found {}", kSize,
                            kOffset, bytes.size()),
                kOffset);
  }
  Ext4Superblock result;
  std::copy_n(bytes.begin(), kSize, result.raw_.begin());
  if (const auto magic = le<std::uint16_t, 0x38>(result.view()); magic != kMagic) {
    return fail(
        Errc::bad_magic,
        fmt::format("not an ext2, ext3 or ext4 file system: expected the magic ef53 at byte "
                    "{}, found {:04x}",
                    kOffset + 0x38, magic),
        kOffset + 0x38);
  }
  return result;
}

Result<void> Ext4Superblock::check() const {
  const auto wrong = [](std::size_t offset, std::string what) {
    return fail(Errc::invalid, "impossible superblock: " + std::move(what), kOffset + offset);
  };
  if (log_block_size() > 6) {
    return wrong(0x18, fmt::format("expected a block size of 1 to 64 KiB (0 to 6), found {}",
                                   log_block_size()));
  }
  const std::uint32_t b = block_size();
  const std::uint32_t log_cluster = le<std::uint32_t, 0x1C>(view());
  const bool bigalloc = (features().ro_compat & fs_feature::kBigalloc) != 0;
  if (bigalloc && (log_cluster < log_block_size() || log_cluster > 20)) {
    return wrong(0x1C,
                 fmt::format("expected a cluster size of at least a block, found {}", log_cluster));
  }
  if (revision() > kDynamicRevision) {
    return wrong(0x4C, fmt::format("expected revision 0 or 1, found {}", revision()));
  }
  if (first_data_block() != (b == 1024 && !bigalloc ? 1U : 0U) && first_data_block() > 1) {
    return wrong(
        0x14, fmt::format("expected a first data block of 0 or 1, found {}", first_data_block()));
  }
  if (block_count() <= first_data_block()) {
    return wrong(0x04, fmt::format("expected blocks behind block {}, found a count of {}",
                                   first_data_block(), block_count()));
  }
  if (block_count() > (std::uint64_t{1} << 48)) {
    return wrong(0x04, fmt::format("expected at most 2^48 blocks, found {}", block_count()));
  }
  const std::uint64_t per_group_max = std::uint64_t{8} * b * (cluster_size() / b);
  if (blocks_per_group() < 8 || blocks_per_group() > per_group_max) {
    return wrong(0x20, fmt::format("expected 8 to {} blocks in a group, found {}", per_group_max,
                                   blocks_per_group()));
  }
  if (group_count() > (std::uint64_t{1} << 32) - 1) {
    return wrong(0x20, fmt::format("expected fewer than 2^32 groups, found {}", group_count()));
  }
  if (inode_size() < kOldInodeSize || inode_size() > b || !std::has_single_bit(inode_size())) {
    return wrong(0x58, fmt::format("expected an inode size of 128 to {}, a power of two, found {}",
                                   b, inode_size()));
  }
  if (inodes_per_group() == 0 || inodes_per_group() > 8 * b) {
    return wrong(0x28, fmt::format("expected 1 to {} inodes in a group, found {}", 8 * b,
                                   inodes_per_group()));
  }
  if (inode_count() == 0 || inode_count() > group_count() * inodes_per_group()) {
    return wrong(0x00, fmt::format("expected at most {} inodes ({} groups of {}), found {}",
                                   group_count() * inodes_per_group(), group_count(),
                                   inodes_per_group(), inode_count()));
  }
  const std::uint32_t descriptor_min = (features().incompat & fs_feature::k64Bit) != 0 ? 64 : 32;
  if (descriptor_size() < descriptor_min || descriptor_size() > b ||
      !std::has_single_bit(descriptor_size())) {
    return wrong(0xFE, fmt::format("expected group descriptors of {} to {} bytes, found {}",
                                   descriptor_min, b, descriptor_size()));
  }
  return {};
}

std::uint64_t Ext4Superblock::block_count() const noexcept {
  const std::uint64_t low = le<std::uint32_t, 0x04>(view());
  const std::uint64_t high = le<std::uint32_t, 0x150>(view());
  return (features().incompat & fs_feature::k64Bit) != 0 ? high << 32 | low : low;
}

std::uint64_t Ext4Superblock::free_block_count() const noexcept {
  const std::uint64_t low = le<std::uint32_t, 0x0C>(view());
  const std::uint64_t high = le<std::uint32_t, 0x158>(view());
  return (features().incompat & fs_feature::k64Bit) != 0 ? high << 32 | low : low;
}

std::uint32_t Ext4Superblock::cluster_size() const noexcept {
  const bool bigalloc = (features().ro_compat & fs_feature::kBigalloc) != 0;
  return bigalloc ? 1024U << le<std::uint32_t, 0x1C>(view()) : block_size();
}

std::uint16_t Ext4Superblock::inode_size() const noexcept {
  return revision() == 0 ? kOldInodeSize : le<std::uint16_t, 0x58>(view());
}

FsFeatures Ext4Superblock::features() const noexcept {
  return {le<std::uint32_t, 0x5C>(view()), le<std::uint32_t, 0x60>(view()),
          le<std::uint32_t, 0x64>(view())};
}

Uuid Ext4Superblock::uuid() const noexcept { return uuid_at(view().subspan<0x68, 16>()); }
Uuid Ext4Superblock::journal_uuid() const noexcept { return uuid_at(view().subspan<0xD0, 16>()); }

std::string Ext4Superblock::label() const {
  std::string text;
  for (const std::byte b : view().subspan<0x78, 16>()) {
    if (b == std::byte{0}) break;
    text += static_cast<char>(b);
  }
  return text;
}

std::uint16_t Ext4Superblock::descriptor_size() const noexcept {
  constexpr std::uint16_t kOldSize = 32;
  if ((features().incompat & fs_feature::k64Bit) == 0) return kOldSize;
  return le<std::uint16_t, 0xFE>(view());
}

std::uint64_t Ext4Superblock::journal_backup_size() const noexcept {
  const std::uint64_t high = le<std::uint32_t, 0x10C + 15 * 4>(view());
  return high << 32 | le<std::uint32_t, 0x10C + 16 * 4>(view());
}

std::uint32_t Ext4Superblock::checksum_seed() const noexcept {
  if ((features().incompat & fs_feature::kMetadataCsumSeed) != 0) {
    return le<std::uint32_t, 0x270>(view());
  }
  return crc32c(0xFFFF'FFFF, view().subspan<0x68, 16>());
}

std::array<Ino, 3> Ext4Superblock::quota_inodes() const noexcept {
  return {Ino{le<std::uint32_t, 0x240>(view())}, Ino{le<std::uint32_t, 0x244>(view())},
          Ino{le<std::uint32_t, 0x26C>(view())}};
}

std::string Ext4Superblock::state_text() const {
  std::string text = (state() & kStateValid) != 0 ? "clean" : "not clean";
  if ((state() & kStateErrors) != 0) text += " with errors";
  return text;
}

bool Ext4Superblock::checksum_ok() const noexcept {
  return !has_checksum() ||
         le<std::uint32_t, 0x3FC>(view()) == crc32c(0xFFFF'FFFF, view().first<0x3FC>());
}

std::uint64_t Ext4Superblock::group_count() const noexcept {
  const std::uint64_t blocks = block_count() - first_data_block();
  return (blocks + blocks_per_group() - 1) / blocks_per_group();
}

std::uint64_t Ext4Superblock::descriptor_block_count() const noexcept {
  return (group_count() + descriptors_per_block() - 1) / descriptors_per_block();
}

std::uint32_t Ext4Superblock::inode_table_blocks() const noexcept {
  const std::uint64_t bytes = std::uint64_t{inodes_per_group()} * inode_size();
  return static_cast<std::uint32_t>((bytes + block_size() - 1) / block_size());
}

}  // namespace jbdlab::analyze
