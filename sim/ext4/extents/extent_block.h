#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace jbdlab::ext4 {

// The nodes of extent trees, as bytes. The root lies in the 60 bytes of i_block and has 4 entries;
// every other node is a block of the file system. Depth counts from the leaves: a leaf has depth 0.
//
// Layout (little-endian; struct ext4_extent_header, ext4_extent, ext4_extent_idx and
// ext4_extent_tail in fs/ext4/ext4_extents.h):
//   header   0 u16 magic 0xF30A   2 u16 entries   4 u16 max   6 u16 depth   8 u32 generation
//   extent   0 u32 first logical block            4 u16 length, unwritten if > 32768
//            6 u16 physical block, high half      8 u32 low half
//   index    0 u32 first logical block below      4 u32 child, low half  8 u16 high half  10 unused
//   tail     behind the max-th entry, blocks only, with metadata_csum: u32 crc32c of all before it
inline constexpr std::uint16_t kExtentMagic = 0xF30A;
inline constexpr std::size_t kExtentEntrySize = 12;  // of a header, an extent and an index alike
inline constexpr std::uint32_t kRootEntries = 4;
inline constexpr std::uint32_t kMaxExtentDepth = 5;
inline constexpr std::uint32_t kMaxWrittenLen = 32768;
inline constexpr std::uint32_t kMaxUnwrittenLen = 32767;

constexpr std::uint32_t entries_per_block(std::uint32_t block_size) noexcept {
  return static_cast<std::uint32_t>((block_size - kExtentEntrySize) / kExtentEntrySize);
}

// A run of file blocks that lies in one piece on the disk. An unwritten one reads as zeros.
struct Extent {
  LogicalBlock first;
  std::uint32_t len = 0;
  FsBlock physical;
  bool unwritten = false;

  std::uint64_t end() const noexcept { return std::uint64_t{first.value()} + len; }
  bool contains(LogicalBlock block) const noexcept {
    return block >= first && block.value() < end();
  }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// True if `right` continues `left` in the file and on the disk, is of the same kind, and both
// together are not too long for one entry (ext4_can_extents_be_merged).
bool can_merge(const Extent& left, const Extent& right) noexcept;

// An entry above the leaves: the node `child` has what is at and behind `first`.
struct ExtentIndex {
  LogicalBlock first;
  FsBlock child;
  friend bool operator==(const ExtentIndex&, const ExtentIndex&) = default;
};

// What a node is checked against.
struct NodeRules {
  std::uint32_t depth = 0;         // what it must say
  std::uint32_t capacity = 0;      // entries that it can hold at most
  FsBlock first_block, end_block;  // of the file system: pointers lie inside, and not at the first
};

// A node, read. Borrows the bytes. Its queries are safe on every node that parse() has let pass.
class ExtentNode {
 public:
  // Of bytes that have been checked before.
  explicit ExtentNode(ByteSpan bytes) noexcept : raw_(bytes) {}

  // Checks magic, depth and counts: what makes every entry lie inside of `bytes`. Cheap.
  // Errors: bad_magic, invalid.
  static Result<ExtentNode> parse(ByteSpan bytes, const NodeRules& rules);
  // Checks the entries: sorted, not overlapping, inside the file system
  // (ext4_valid_extent_entries). Errors: invalid.
  Result<void> check_entries(const NodeRules& rules) const;

  std::uint16_t magic() const { return get_le<std::uint16_t>(raw_, 0); }
  std::uint32_t entries() const { return get_le<std::uint16_t>(raw_, 2); }
  std::uint32_t max() const { return get_le<std::uint16_t>(raw_, 4); }
  std::uint32_t depth() const { return get_le<std::uint16_t>(raw_, 6); }
  bool full() const { return entries() >= max(); }

  Extent extent(std::uint32_t slot) const;           // of a leaf
  ExtentIndex index(std::uint32_t slot) const;       // of a node above the leaves
  LogicalBlock first_of(std::uint32_t slot) const {  // of either
    return LogicalBlock{get_le<std::uint32_t>(raw_, at(slot))};
  }
  // The last entry that begins at or before `block`, the first one if none does: where the kernel's
  // binary search ends. Precondition: entries() > 0.
  std::uint32_t search(LogicalBlock block) const;

  // Place of the checksum, and what it should be.
  std::size_t tail_offset() const { return at(max()); }
  std::uint32_t stored_checksum() const { return get_le<std::uint32_t>(raw_, tail_offset()); }
  std::uint32_t checksum(std::uint32_t seed) const;

 protected:
  static std::size_t at(std::uint32_t slot) noexcept {
    return kExtentEntrySize * (std::size_t{slot} + 1);
  }
  ByteSpan raw_;
};

// A node, changed in place. As in the kernel, entries that fall away leave their bytes behind.
class ExtentNodeEditor {
 public:
  explicit ExtentNodeEditor(MutableByteSpan bytes) noexcept : raw_(bytes) {}
  // Writes the header of an empty node.
  static ExtentNodeEditor build(MutableByteSpan bytes, std::uint32_t max, std::uint32_t depth);

  ExtentNode view() const noexcept { return ExtentNode(raw_); }
  void set_entries(std::uint32_t n) { set_half(2, n); }
  void set_max(std::uint32_t n) { set_half(4, n); }
  void set_depth(std::uint32_t n) { set_half(6, n); }

  void put(std::uint32_t slot, const Extent& extent);
  void put(std::uint32_t slot, const ExtentIndex& index);
  void set_first(std::uint32_t slot, LogicalBlock first) {
    set_le<std::uint32_t>(raw_, at(slot), first.value());
  }
  void set_child(std::uint32_t slot, FsBlock child);
  // Makes room at `slot` / takes the entry at `slot` away; the entries behind it move.
  void open_gap(std::uint32_t slot);
  void remove(std::uint32_t slot);
  // Appends the entries of `from` at and behind `slot`.
  void append_from(const ExtentNode& from, ByteSpan from_bytes, std::uint32_t slot);
  void update_checksum(std::uint32_t seed);

 private:
  static std::size_t at(std::uint32_t slot) noexcept {
    return kExtentEntrySize * (std::size_t{slot} + 1);
  }
  void set_half(std::size_t offset, std::uint32_t value) {
    set_le<std::uint16_t>(raw_, offset, static_cast<std::uint16_t>(value));
  }
  MutableByteSpan raw_;
};

}  // namespace jbdlab::ext4
