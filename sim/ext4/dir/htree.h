#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "sim/ext4/dir/dir_block.h"
#include "sim/ext4/dir_hash.h"

// The index of a hashed directory, as bytes: no journal, no inode, no waiting. Block 0 is the root
// of the index, other blocks are nodes of it or leaves, which are directory blocks like any other.
namespace jbdlab::ext4 {

// How the names of one directory are hashed.
struct DirHasher {
  DirHashVersion version = DirHashVersion::half_md4;
  bool unsigned_chars = false;
  std::array<std::uint32_t, 4> seed{};

  DirHash operator()(std::string_view name) const noexcept {
    return dir_hash(version, unsigned_chars, seed, name);
  }
};

// The table of an index block: which block of the directory serves the hashes from which on. A view
// of where it lies; the bytes are passed in. Invariants of a valid table: 1 <= count <= limit,
// hashes ascend; entry 0 has no hash of its own, it serves what lies before entry 1.
//
// Layout (little-endian; struct dx_root, dx_node, dx_countlimit, dx_tail of fs/ext4/namei.c):
//   root:   0 entry "."       12 entry "..", as long as the rest of the block
//          24 u32 0           28 u8 hash version   29 u8 length of this header = 8
//          30 u8 levels of nodes below the root    31 u8 flags = 0   32 table
//   node:   0 an unused entry as long as the block, so that the index hides from a linear reader
//           8 table
//   table:  0 u16 limit        2 u16 count         4 u32 block of entry 0
//           then entries of 8 bytes: u32 hash, u32 block. Low bit of a hash: the leaf before ends
//           with the same hash.
//   tail, behind `limit` entries, only with checksums: u32 0, u32 crc32c of all that counts: the
//   block
//           up to entry `count`, then the tail with zero for a checksum
class IndexTable {
 public:
  static constexpr std::uint32_t kRootInfo = 24;

  static IndexTable of_root(const DirFormat& format) noexcept { return {format, 32}; }
  static IndexTable of_node(const DirFormat& format) noexcept { return {format, 8}; }

  std::uint32_t limit() const noexcept { return limit_; }  // entries that have room
  bool valid(ByteSpan block) const;                        // limit is ours, count in range
  std::uint32_t count(ByteSpan block) const;
  bool full(ByteSpan block) const { return count(block) == limit_; }
  std::uint32_t hash(ByteSpan block, std::uint32_t index) const;  // index > 0
  LogicalBlock target(ByteSpan block, std::uint32_t index) const;
  // The entry that serves `hash`: the last one whose hash is not greater.
  std::uint32_t find(ByteSpan block, std::uint32_t hash) const;

  void set_limit(MutableByteSpan block) const;
  void set_count(MutableByteSpan block, std::uint32_t count) const;
  void set_target(MutableByteSpan block, std::uint32_t index, LogicalBlock target) const;
  // Adds an entry behind `index`; the table is not full.
  void insert_after(MutableByteSpan block, std::uint32_t index, std::uint32_t hash,
                    LogicalBlock target) const;
  // Copies `count` entries from `first` on to the beginning of another table, which then has them,
  // and its own limit. This table keeps them.
  void copy_to(ByteSpan block, std::uint32_t first, std::uint32_t count, const IndexTable& other,
               MutableByteSpan other_block) const;

  void update_checksum(MutableByteSpan block, std::uint32_t seed) const;
  bool checksum_ok(ByteSpan block, std::uint32_t seed) const;

 private:
  IndexTable(const DirFormat& format, std::uint32_t at) noexcept
      : at_(at),
        limit_((format.block_size - at - (format.checksums ? 8 : 0)) / 8),
        checksums_(format.checksums) {}
  std::size_t entry_at(std::uint32_t index) const noexcept { return at_ + std::size_t{8} * index; }
  std::uint32_t checksum(ByteSpan block, std::uint32_t seed) const;

  std::uint32_t at_;
  std::uint32_t limit_;
  bool checksums_;
};

// The header of the root.
struct IndexRootInfo {
  DirHashVersion hash_version = DirHashVersion::half_md4;
  std::uint32_t levels = 0;  // of nodes between the root and the leaves
};
// Errors: invalid (a field that we would not write), unsupported (another hash).
Result<IndexRootInfo> parse_index_root(const DirFormat& format, ByteSpan block);
void build_index_root_info(const IndexRootInfo& info, MutableByteSpan block);
// Is this a node of an index, by its only entry? A block of a directory without checksums that has
// been emptied looks the same.
bool looks_like_index_node(const DirFormat& format, ByteSpan block);
void init_index_node(const DirFormat& format, MutableByteSpan block);

// Turns the only block of a linear directory into the root of an index whose only leaf is `leaf`,
// block 1, which takes over all entries but "." and ".." (make_indexed_dir). `leaf` is all zeros.
// False if the block does not begin with these two, or its chain is broken; nothing has changed
// then.
bool convert_to_index(const DirFormat& format, DirHashVersion version, MutableByteSpan block,
                      MutableByteSpan leaf);

// Where a leaf was cut in two.
struct LeafSplit {
  std::uint32_t hash = 0;       // first hash of the new leaf
  bool continued = false;       // the old leaf ends with the same hash
  std::uint32_t low_last = 0;   // offset of the last entry of the old leaf: all free room is there
  std::uint32_t high_last = 0;  // the same of the new leaf

  std::uint32_t index_hash() const noexcept { return hash + (continued ? 1 : 0); }
};
// Moves the entries with the higher hashes, about half of the bytes, to `fresh` (all zeros), and
// packs both (do_split). Nothing, if `leaf` is damaged or has no two entries; then nothing has
// changed.
std::optional<LeafSplit> split_leaf(const DirFormat& format, const DirHasher& hasher,
                                    MutableByteSpan leaf, MutableByteSpan fresh);

}  // namespace jbdlab::ext4
