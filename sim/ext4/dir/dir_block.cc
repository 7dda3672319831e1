#include "sim/ext4/dir/dir_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/crc32c.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint8_t kTailType = 0xDE;  // EXT4_FT_DIR_CSUM
constexpr std::size_t kInodeAt = 0, kRecLenAt = 4, kNameLenAt = 6, kTypeAt = 7, kNameAt = 8;

// What a walk along the chain needs of an entry, so that the next step stays inside and ends.
bool may_step(const DirEntry& entry, std::uint32_t offset, std::uint32_t end) noexcept {
  return entry.rec_len >= entry.needed() && entry.rec_len % 4 == 0 && entry.rec_len <= end - offset;
}

// Names of a directory often differ only in their last characters, so the last one decides first.
inline bool has_name(ByteSpan block, std::uint32_t offset, const DirEntry& entry, std::string_view name) {
  if (entry.name_len != name.size() || !entry.used()) return false;
  if (name.empty()) return true;
  const std::size_t at = offset + kNameAt;
  if (block[at + name.size() - 1] != static_cast<std::byte>(name.back())) return false;
  return std::memcmp(block.subspan(at, name.size()).data(), name.data(), name.size()) == 0;
}

void set_header(MutableByteSpan block, std::uint32_t offset, const DirEntry& entry) {
  set_le(block, offset + kInodeAt, entry.ino.value());
  set_le(block, offset + kRecLenAt, static_cast<std::uint16_t>(entry.rec_len));
  set_le(block, offset + kNameLenAt, static_cast<std::uint8_t>(entry.name_len));
  set_le(block, offset + kTypeAt, entry.raw_type);
}

std::uint8_t type_byte(const DirFormat& format, FileType type) noexcept {
  return format.file_types ? static_cast<std::uint8_t>(type) : std::uint8_t{0};
}

}  // namespace

FileType file_type_of(std::uint16_t mode) noexcept {
  switch (mode >> 12) {
    case 0x1:
      return FileType::fifo;
    case 0x2:
      return FileType::char_device;
    case 0x4:
      return FileType::directory;
    case 0x6:
      return FileType::block_device;
    case 0x8:
      return FileType::regular;
    case 0xA:
      return FileType::symlink;
    case 0xC:
      return FileType::socket;
    default:
      return FileType::unknown;
  }
}

DirFormat DirFormat::of(const Geometry& geometry) noexcept {
  return {.block_size = geometry.block_size,
          .inodes = geometry.inodes,
          .checksums = geometry.metadata_csum(),
          .file_types = (geometry.incompat & kIncompatFiletype) != 0};
}

std::string dir_entry_name(ByteSpan block, std::uint32_t offset) {
  const std::uint32_t size = dir_entry_at(block, offset).name_len;
  const ByteSpan bytes = block.subspan(offset + kNameAt, size);
  std::string name(size, '\0');
  std::memcpy(name.data(), bytes.data(), bytes.size());
  return name;
}

Result<DirEntry> check_dir_entry(const DirFormat& format, ByteSpan block, std::uint32_t offset,
                                 std::uint32_t end) {
  if (end > block.size() || offset > end || end - offset < kDirEntryMin) {
    return fail(Errc::invalid,
                fmt::format("directory: expected an entry at offset {}, but the block ends at {}",
                            offset, end),
                offset);
  }
  const DirEntry entry = dir_entry_at(block, offset);
  const std::uint32_t left = end - offset;
  const auto bad = [&](const char* what) {
    return fail(Errc::invalid,
                fmt::format("directory: entry at offset {} {} (inode {}, rec_len {}, name of {} "
                            "bytes, {} bytes to the end)",
                            offset, what, entry.ino.value(), entry.rec_len, entry.name_len, left),
                offset);
  };
  if (entry.rec_len < kDirEntryMin) return bad("is shorter than any entry");
  if (entry.rec_len % 4 != 0) return bad("has a length that is no multiple of 4");
  if (entry.rec_len < dir_entry_size(entry.name_len)) return bad("is too short for its name");
  if (entry.rec_len > left) return bad("reaches beyond the end of the block");
  if (entry.rec_len != left && left - entry.rec_len < kDirEntryMin) {
    return bad("leaves no room for another one, and does not reach to the end");
  }
  if (entry.ino.value() > format.inodes) return bad("has an inode number beyond the last inode");
  if (entry.rec_len == left && entry.name_len == 1 &&
      get_le<std::uint8_t>(block, offset + kNameAt) == '.') {
    return bad("is \".\" and the last of the block");
  }
  return entry;
}

Result<void> check_dir_block(const DirFormat& format, ByteSpan block) {
  if (block.size() != format.block_size) {
    return fail(Errc::truncated, fmt::format("directory: expected a block of {} bytes, found {}",
                                             format.block_size, block.size()));
  }
  const std::uint32_t end = format.entries_end();
  for (std::uint32_t offset = 0; offset < end;) {
    const Result<DirEntry> entry = check_dir_entry(format, block, offset, end);
    if (!entry) return std::unexpected(entry.error());
    offset += entry->rec_len;
  }
  if (!format.checksums) return {};
  const DirEntry tail = dir_entry_at(block, end);
  if (tail.used() || tail.rec_len != kDirTailSize || tail.name_len != 0 ||
      tail.raw_type != kTailType) {
    return fail(Errc::invalid,
                fmt::format("directory: expected a checksum tail at offset {}, found inode {}, "
                            "rec_len {}, type {:#x}",
                            end, tail.ino.value(), tail.rec_len, tail.raw_type),
                end);
  }
  return {};
}

std::expected<std::uint32_t, DirMiss> find_dir_entry(const DirFormat& format, ByteSpan block,
                                                     std::string_view name) {
  CHECK(block.size() == format.block_size);
  const std::uint32_t end = format.block_size;  // the tail is one more unused entry
  for (std::uint32_t offset = 0; offset + kDirEntryMin <= end;) {
    const DirEntry entry = dir_entry_at(block, offset);
    if (!may_step(entry, offset, end)) return std::unexpected(DirMiss::damaged);
    if (has_name(block, offset, entry, name)) return offset;
    offset += entry.rec_len;
  }
  return std::unexpected(DirMiss::absent);
}

std::expected<std::uint32_t, DirMiss> find_dir_slot(const DirFormat& format, ByteSpan block,
                                                    std::string_view name) {
  CHECK(block.size() == format.block_size);
  const std::uint32_t end = format.entries_end();
  const std::uint32_t need = dir_entry_size(name.size());
  for (std::uint32_t offset = 0; offset + need <= end;) {
    const DirEntry entry = dir_entry_at(block, offset);
    if (!may_step(entry, offset, end)) return std::unexpected(DirMiss::damaged);
    if (has_name(block, offset, entry, name)) return std::unexpected(DirMiss::exists);
    if (entry.slack() >= need) return offset;
    offset += entry.rec_len;
  }
  return std::unexpected(DirMiss::full);
}

void insert_dir_entry(const DirFormat& format, MutableByteSpan block, std::uint32_t slot,
                      const NewDirEntry& entry) {
  CHECK(!entry.name.empty() && entry.name.size() <= kNameMax);
  const DirEntry before = dir_entry_at(block, slot);
  CHECK(before.slack() >= dir_entry_size(entry.name.size()));
  std::uint32_t rec_len = before.rec_len;
  if (before.used()) {
    const std::uint32_t kept = before.needed();
    set_rec_len(block, slot, kept);
    slot += kept;
    rec_len -= kept;
  }
  set_header(block, slot,
             {.ino = entry.ino,
              .rec_len = rec_len,
              .name_len = static_cast<std::uint32_t>(entry.name.size()),
              .raw_type = type_byte(format, entry.type)});
  const MutableByteSpan to = block.subspan(slot + kNameAt, entry.name.size());
  std::memcpy(to.data(), entry.name.data(), to.size());
}

bool remove_dir_entry(const DirFormat& format, MutableByteSpan block, std::uint32_t offset) {
  const std::uint32_t end = format.entries_end();
  std::optional<std::uint32_t> previous;
  for (std::uint32_t at = 0; at + kDirEntryMin <= end;) {
    const DirEntry entry = dir_entry_at(block, at);
    if (!may_step(entry, at, end)) return false;
    if (at == offset) {
      if (previous) {
        set_rec_len(block, *previous, dir_entry_at(block, *previous).rec_len + entry.rec_len);
        std::ranges::fill(block.subspan(at, entry.rec_len), std::byte{0});
      } else {
        std::ranges::fill(block.subspan(at, entry.rec_len), std::byte{0});
        set_rec_len(block, at, entry.rec_len);
      }
      return true;
    }
    previous = at;
    at += entry.rec_len;
  }
  return false;
}

void set_dir_entry(const DirFormat& format, MutableByteSpan block, std::uint32_t offset, Ino ino,
                   FileType type) {
  set_le(block, offset + kInodeAt, ino.value());
  if (format.file_types) set_le(block, offset + kTypeAt, static_cast<std::uint8_t>(type));
}

void set_rec_len(MutableByteSpan block, std::uint32_t offset, std::uint32_t rec_len) {
  set_le(block, offset + kRecLenAt, static_cast<std::uint16_t>(rec_len));
}

void init_dot_entries(const DirFormat& format, MutableByteSpan block, Ino self, Ino parent) {
  init_empty_dir_block(format, block);
  insert_dir_entry(format, block, 0, {.ino = self, .type = FileType::directory, .name = "."});
  insert_dir_entry(format, block, 0, {.ino = parent, .type = FileType::directory, .name = ".."});
}

void init_empty_dir_block(const DirFormat& format, MutableByteSpan block) {
  CHECK(block.size() == format.block_size);
  set_rec_len(block, 0, format.entries_end());
  init_dir_tail(format, block);
}

void init_dir_tail(const DirFormat& format, MutableByteSpan block) {
  if (!format.checksums) return;
  const std::uint32_t at = format.entries_end();
  std::ranges::fill(block.subspan(at, kDirTailSize), std::byte{0});
  set_header(block, at,
             {.ino = Ino{0}, .rec_len = kDirTailSize, .name_len = 0, .raw_type = kTailType});
}

void update_dir_checksum(const DirFormat& format, MutableByteSpan block, std::uint32_t seed) {
  if (!format.checksums) return;
  set_le(block, format.entries_end() + kNameAt, crc32c(seed, block.first(format.entries_end())));
}

bool dir_checksum_ok(const DirFormat& format, ByteSpan block, std::uint32_t seed) {
  return !format.checksums || get_le<std::uint32_t>(block, format.entries_end() + kNameAt) ==
                                  crc32c(seed, block.first(format.entries_end()));
}

}  // namespace jbdlab::ext4
