#include <algorithm>

#include "analyze/block_kind.h"
#include "analyze/file_map.h"

// What a block looks like by itself (struct ext4_dir_entry_2, ext4_dir_entry_tail, dx_node,
// ext4_xattr_header, ext4_orphan_block_tail in fs/ext4).
namespace jbdlab::analyze {
namespace {

constexpr std::uint32_t kXattrMagic = 0xEA02'0000;
constexpr std::uint32_t kOrphanMagic = 0x0B10'CA04;
constexpr std::uint8_t kTailType = 0xDE;
constexpr std::size_t kTailSize = 12;
constexpr std::uint8_t kFileTypeMax = 7;

bool is_xattr(ByteSpan block) {
  return get_le<std::uint32_t>(block, 0) == kXattrMagic && get_le<std::uint32_t>(block, 4) != 0 &&
         get_le<std::uint32_t>(block, 8) == 1;
}

bool is_extent(ByteSpan block) {
  constexpr std::size_t kHeaderSize = 12, kEntrySize = 12;
  return parse_extent_node(block).has_value() &&
         get_le<std::uint16_t>(block, 4) == (block.size() - kHeaderSize) / kEntrySize;
}

bool is_orphan_file(ByteSpan block) {
  return get_le<std::uint32_t>(block, block.size() - 8) == kOrphanMagic;
}

// An inner node of a hashed directory: one empty entry over the whole block, and in it a table.
bool is_hash_node(ByteSpan block) {
  constexpr std::size_t kEntrySize = 8;
  const std::uint16_t limit = get_le<std::uint16_t>(block, 8);
  const std::uint16_t count = get_le<std::uint16_t>(block, 10);
  return count >= 1 && count <= limit && limit <= (block.size() - 8) / kEntrySize &&
         limit + 2U >= (block.size() - 8) / kEntrySize;
}

// A length as it is stored in two bytes: blocks of 64 KiB need more than those hold.
std::size_t record_length(std::uint16_t stored, std::size_t block_size) {
  if (block_size < 65'536) return stored;
  if (stored == 0xFFFF || stored == 0) return 65'536;
  return (stored & 65'532U) | (stored & 3U) << 16;
}

ContentGuess guess_directory(ByteSpan block, std::optional<std::uint32_t> inode_count) {
  std::size_t live = 0;
  bool tail = false;
  std::size_t at = 0;
  while (at < block.size()) {
    if (block.size() - at < kTailSize) return {};
    const std::uint32_t inode = get_le<std::uint32_t>(block, at);
    const std::uint16_t stored_length = get_le<std::uint16_t>(block, at + 4);
    if (inode == 0 && stored_length == 0) return {};  // zeros, also where 0 stands for 64 KiB
    const std::size_t length = record_length(stored_length, block.size());
    const auto name_length = std::to_integer<std::uint8_t>(block[at + 6]);
    const auto type = std::to_integer<std::uint8_t>(block[at + 7]);
    if (length % 4 != 0 || length < kTailSize || length > block.size() - at) return {};
    if (inode != 0) {
      if (name_length == 0 || name_length > length - 8 || type > kFileTypeMax) return {};
      if (inode_count && inode > *inode_count) return {};
      ++live;
    } else if (type == kTailType && name_length == 0 && length == kTailSize &&
               at + length == block.size()) {
      tail = true;
    } else if (name_length > length - 8) {
      return {};
    } else if (at == 0 && length == block.size() && name_length == 0 && is_hash_node(block)) {
      return {BlockKind::dir, true};
    }
    at += length;
  }
  return {BlockKind::dir, live > 0 || tail};
}

}  // namespace

ContentGuess guess_content(ByteSpan block, std::optional<std::uint32_t> inode_count) {
  constexpr std::size_t kBlockSizeMin = 1024;
  if (block.size() < kBlockSizeMin) return {};
  if (is_xattr(block)) return {BlockKind::xattr, true};
  if (is_extent(block)) return {BlockKind::extent, true};
  if (is_orphan_file(block)) return {BlockKind::orphan_file, true};
  return guess_directory(block, inode_count);
}

}  // namespace jbdlab::analyze
