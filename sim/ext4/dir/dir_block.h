#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "sim/ext4/volume.h"

// The entries in one block of a directory, as bytes: no journal, no inode, no waiting.
namespace jbdlab::ext4 {

// What an entry points at (EXT4_FT_* of fs/ext4/ext4.h).
enum class FileType : std::uint8_t {
  unknown,
  regular,
  directory,
  char_device,
  block_device,
  fifo,
  socket,
  symlink,
};
// The type that goes with the type bits of a mode; unknown for bits that are no type.
FileType file_type_of(std::uint16_t mode) noexcept;

inline constexpr std::uint32_t kNameMax = 255;       // bytes of a name
inline constexpr std::uint32_t kDirEntryHeader = 8;  // bytes before the name
inline constexpr std::uint32_t kDirEntryMin = 12;    // "." fits
inline constexpr std::uint32_t kDirTailSize = 12;

// How the directory blocks of a file system are laid out: the feature bits, decided once.
struct DirFormat {
  std::uint32_t block_size = 0;
  std::uint32_t inodes = 0;  // valid numbers are 1 to `inodes`
  bool checksums = false;    // metadata_csum: blocks end with a tail
  bool file_types = false;   // filetype: entries tell what they point at

  static DirFormat of(const Geometry& geometry) noexcept;
  // Where the entries of a block end and the tail, if any, begins.
  constexpr std::uint32_t entries_end() const noexcept {
    return block_size - (checksums ? kDirTailSize : 0);
  }
};

// Bytes that an entry with a name of `name_size` bytes needs.
constexpr std::uint32_t dir_entry_size(std::size_t name_size) noexcept {
  return (kDirEntryHeader + static_cast<std::uint32_t>(name_size) + 3) & ~std::uint32_t{3};
}

// The fixed part of an entry. The entries of a block are a chain: each tells where the next one
// begins, the last one reaches to the end.
//
// Layout (little-endian; struct ext4_dir_entry_2, fs/ext4/ext4.h):
//   0 u32 inode, 0 if unused   4 u16 rec_len: bytes to the next entry, a multiple of 4
//   6 u8  name length          7 u8  file type   8 name, without a terminator
// The tail of a block with a checksum is an unused entry of 12 bytes, so that a reader that knows
// nothing of it steps over it (struct ext4_dir_entry_tail): type 0xDE, and the checksum as the
// name.
struct DirEntry {
  Ino ino;
  std::uint32_t rec_len = 0;  // to the next entry, with whatever is free behind the name
  std::uint32_t name_len = 0;
  std::uint8_t raw_type = 0;

  bool used() const noexcept { return ino.value() != 0; }
  FileType type() const noexcept {
    return raw_type <= static_cast<std::uint8_t>(FileType::symlink)
               ? static_cast<FileType>(raw_type)
               : FileType::unknown;
  }
  // Bytes that it cannot do without; an entry without a name is damage, and has room for one.
  std::uint32_t needed() const noexcept { return dir_entry_size(name_len > 0 ? name_len : 1); }
  // Bytes behind the name that a new entry could have.
  std::uint32_t slack() const noexcept { return used() ? rec_len - needed() : rec_len; }
};
// The entry at `offset`, unchecked; offset + 8 must lie in the block.
inline DirEntry dir_entry_at(ByteSpan block, std::uint32_t offset) {
  const auto word = get_le<std::uint64_t>(block, offset);
  return {.ino = Ino{static_cast<std::uint32_t>(word)},
          .rec_len = static_cast<std::uint32_t>(word >> 32) & 0xffff,
          .name_len = static_cast<std::uint32_t>(word >> 48) & 0xff,
          .raw_type = static_cast<std::uint8_t>(word >> 56)};
}
std::string dir_entry_name(ByteSpan block, std::uint32_t offset);

// Is the entry at `offset` one that may be believed, in a chain that ends at `end`? The checks of
// __ext4_check_dir_entry (fs/ext4/dir.c). Errors: invalid.
Result<DirEntry> check_dir_entry(const DirFormat& format, ByteSpan block, std::uint32_t offset,
                                 std::uint32_t end);
// All entries of a leaf (or of a block of a linear directory), and that its tail is one.
Result<void> check_dir_block(const DirFormat& format, ByteSpan block);

// Why there is no offset to return.
enum class DirMiss : std::uint8_t {
  absent,   // no entry has that name
  exists,   // one has it already
  full,     // no room for one more
  damaged,  // the chain of entries is broken
};

// Offset of the entry with that name (ext4_search_dir); works on the root of an index too, which
// has
// "." and "..". Misses: absent, damaged.
std::expected<std::uint32_t, DirMiss> find_dir_entry(const DirFormat& format, ByteSpan block,
                                                     std::string_view name);
// Offset of the first entry behind whose name a new one fits, or that is unused and long enough
// (ext4_find_dest_de). Names are compared up to there only. Misses: exists, full, damaged.
std::expected<std::uint32_t, DirMiss> find_dir_slot(const DirFormat& format, ByteSpan block,
                                                    std::string_view name);

// Puts an entry into the room that the entry at `slot` has (ext4_insert_dentry).
struct NewDirEntry {
  Ino ino;
  FileType type = FileType::unknown;
  std::string_view name;
};
void insert_dir_entry(const DirFormat& format, MutableByteSpan block, std::uint32_t slot,
                      const NewDirEntry& entry);
// Takes the entry at `offset` out: its bytes become zeros and belong to the one before it; the
// first of a block becomes unused instead (ext4_generic_delete_entry). False if there is no entry
// at `offset`, or the chain is broken before it.
bool remove_dir_entry(const DirFormat& format, MutableByteSpan block, std::uint32_t offset);
// Lets the entry at `offset` point at something else.
void set_dir_entry(const DirFormat& format, MutableByteSpan block, std::uint32_t offset, Ino ino,
                   FileType type);
void set_rec_len(MutableByteSpan block, std::uint32_t offset, std::uint32_t rec_len);

// The first block of a new directory: "." and "..", the rest free (ext4_init_dirblock). `block` is
// all zeros.
void init_dot_entries(const DirFormat& format, MutableByteSpan block, Ino self, Ino parent);
// A block of a linear directory with one unused entry; `block` is all zeros.
void init_empty_dir_block(const DirFormat& format, MutableByteSpan block);

// The tail; no-ops, or always fine, where the format has no checksums. `seed` is
// inode_checksum_seed() of the directory.
void init_dir_tail(const DirFormat& format, MutableByteSpan block);
void update_dir_checksum(const DirFormat& format, MutableByteSpan block, std::uint32_t seed);
bool dir_checksum_ok(const DirFormat& format, ByteSpan block, std::uint32_t seed);

}  // namespace jbdlab::ext4
