#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/format/superblock.h"

namespace jbdlab::analyze {

using jbd2::Uuid;
std::string to_string(const Uuid& uuid);  // 8-4-4-4-12

// The three feature words of a file system.
struct FsFeatures {
  std::uint32_t compat = 0;
  std::uint32_t incompat = 0;
  std::uint32_t ro_compat = 0;
  friend bool operator==(const FsFeatures&, const FsFeatures&) = default;
};

// Those of the bits that this program decides something by; all of them by name: features.h.
namespace fs_feature {
inline constexpr std::uint32_t kHasJournal = 0x4;           // compat
inline constexpr std::uint32_t kFastCommit = 0x400;         // compat
inline constexpr std::uint32_t kOrphanFile = 0x1000;        // compat
inline constexpr std::uint32_t kNeedsRecovery = 0x4;        // incompat
inline constexpr std::uint32_t kJournalDev = 0x8;           // incompat
inline constexpr std::uint32_t kMetaBg = 0x10;              // incompat
inline constexpr std::uint32_t kExtents = 0x40;             // incompat
inline constexpr std::uint32_t k64Bit = 0x80;               // incompat
inline constexpr std::uint32_t kMetadataCsumSeed = 0x2000;  // incompat
inline constexpr std::uint32_t kHugeFile = 0x8;             // ro_compat
inline constexpr std::uint32_t kMetadataCsum = 0x400;       // ro_compat
inline constexpr std::uint32_t kBigalloc = 0x200;           // ro_compat
}  // namespace fs_feature

// The superblock of ext2, ext3 or ext4: a copy of its 1024 bytes (little-endian; struct
// ext4_super_block in fs/ext4/ext4.h, journal-format.md section 2.1). check() says whether its
// sizes can be believed; until then, none is used.
class Ext4Superblock {
 public:
  static constexpr std::size_t kSize = 1024;
  static constexpr std::uint64_t kOffset = 1024;  // in the volume

  // Copies. Errors: truncated; bad_magic, with what was found instead.
  static Result<Ext4Superblock> parse(ByteSpan bytes);

  // The first field that cannot be right, as a sentence: a size that nothing can be computed with,
  // or a count that contradicts another. A superblock that passes has at least one block group, and
  // none of the functions below divides by zero or shifts too far.
  Result<void> check() const;

  std::span<const std::byte, kSize> bytes() const noexcept { return raw_; }

  std::uint32_t inode_count() const noexcept { return le<std::uint32_t, 0x00>(view()); }
  std::uint64_t block_count() const noexcept;
  std::uint64_t free_block_count() const noexcept;  // clusters with bigalloc
  std::uint32_t free_inode_count() const noexcept { return le<std::uint32_t, 0x10>(view()); }
  std::uint32_t first_data_block() const noexcept { return le<std::uint32_t, 0x14>(view()); }
  std::uint32_t log_block_size() const noexcept { return le<std::uint32_t, 0x18>(view()); }
  std::uint32_t block_size() const noexcept { return 1024U << log_block_size(); }
  std::uint32_t cluster_size() const noexcept;
  std::uint32_t blocks_per_group() const noexcept { return le<std::uint32_t, 0x20>(view()); }
  std::uint32_t inodes_per_group() const noexcept { return le<std::uint32_t, 0x28>(view()); }
  std::uint16_t state() const noexcept { return le<std::uint16_t, 0x3A>(view()); }
  std::uint32_t revision() const noexcept { return le<std::uint32_t, 0x4C>(view()); }
  std::uint16_t inode_size() const noexcept;
  FsFeatures features() const noexcept;  // whatever the revision: so do Linux and libext2fs
  Uuid uuid() const noexcept;
  std::string label() const;
  std::uint16_t reserved_gdt_blocks() const noexcept { return le<std::uint16_t, 0xCE>(view()); }
  Uuid journal_uuid() const noexcept;
  Ino journal_inode() const noexcept { return Ino{le<std::uint32_t, 0xE0>(view())}; }
  std::uint32_t journal_device() const noexcept { return le<std::uint32_t, 0xE4>(view()); }
  Ino last_orphan() const noexcept { return Ino{le<std::uint32_t, 0xE8>(view())}; }
  std::uint8_t journal_backup_type() const noexcept { return le<std::uint8_t, 0xFD>(view()); }
  std::uint16_t descriptor_size() const noexcept;  // of a group descriptor
  // The copy of the journal inode's i_block (60 bytes), and of its size.
  std::span<const std::byte, 60> journal_backup_map() const noexcept {
    return view().subspan<0x10C, 60>();
  }
  std::uint64_t journal_backup_size() const noexcept;
  std::uint32_t checksum_seed() const noexcept;      // of metadata checksums
  std::array<Ino, 3> quota_inodes() const noexcept;  // user, group, project; 0: none
  Ino orphan_file_inode() const noexcept { return Ino{le<std::uint32_t, 0x280>(view())}; }

  // "clean", "not clean", "clean with errors", …, as dumpe2fs prints it.
  std::string state_text() const;
  bool has_errors() const noexcept { return (state() & 2) != 0; }
  bool needs_recovery() const noexcept {
    return (features().incompat & fs_feature::kNeedsRecovery) != 0;
  }
  bool has_checksum() const noexcept {
    return (features().ro_compat & fs_feature::kMetadataCsum) != 0;
  }
  bool checksum_ok() const noexcept;  // true also if there is none

  // Derived. Precondition of all: check() passed.
  std::uint64_t group_count() const noexcept;
  std::uint32_t descriptors_per_block() const noexcept { return block_size() / descriptor_size(); }
  std::uint64_t descriptor_block_count() const noexcept;
  std::uint32_t inode_table_blocks() const noexcept;  // of one group

 private:
  Ext4Superblock() noexcept = default;
  std::span<const std::byte, kSize> view() const noexcept { return raw_; }

  std::array<std::byte, kSize> raw_{};
};

}  // namespace jbdlab::analyze
