#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace jbdlab::ext4 {

// A run of blocks inside one group.
struct GroupRun {
  std::uint32_t start = 0;  // offset in the group
  std::uint32_t len = 0;
  friend constexpr bool operator==(GroupRun, GroupRun) = default;
};

// The free space of one group as mballoc sees it: which blocks are free, and how the free ones form
// buddies, naturally aligned pieces of 2^order blocks. What is preallocated counts as used.
//
// Invariants: a free block belongs to exactly one buddy, the largest that fits; so everything here
// is a function of the set of free blocks. Orders go from 0 to log2(block size) + 1.
// Source: ext4_mb_generate_buddy, mb_mark_used, mb_free_blocks, mb_find_extent of
// fs/ext4/mballoc.c, 6.18.
class Buddy {
 public:
  // All of `blocks` (at most 8 * 2^block_bits) used.
  Buddy(std::uint32_t block_bits, std::uint32_t blocks);

  // Starts again from a block bitmap of the disk, where a set bit is a block in use.
  void build(ByteSpan bitmap);

  std::uint32_t orders() const noexcept { return orders_; }
  std::uint32_t free() const noexcept { return free_; }            // bb_free
  std::uint32_t fragments() const noexcept { return fragments_; }  // runs of free blocks
  // No block before it is free (bb_first_free).
  std::uint32_t first_free() const noexcept { return first_free_; }
  // Largest order that has a free buddy; none in a full group.
  std::optional<std::uint32_t> largest_order() const noexcept;
  std::uint32_t buddies(std::uint32_t order) const { return counts_[order]; }
  // Lowest free buddy of exactly `order`, as its first block.
  std::optional<std::uint32_t> lowest_buddy(std::uint32_t order) const noexcept;

  bool is_free(std::uint32_t block) const noexcept {
    return block < blocks_ && (word(0, block) >> (block % 64) & 1) != 0;
  }
  // First free block, first used block at or after `from`; the group's size if there is none.
  std::uint32_t next_free(std::uint32_t from) const noexcept;
  std::uint32_t next_used(std::uint32_t from) const noexcept;

  // What a search that stands on `block` sees: a run that begins there, made of whole buddies (the
  // rest of the one that `block` is in, then its neighbours) until it has `needed` blocks. So the
  // run may be longer than needed, and shorter than the free space. Length 0 if `block` is used.
  GroupRun find_extent(std::uint32_t block, std::uint32_t needed) const noexcept;

  // Precondition: all of [start, start + len) is free (used, for mark_free).
  void mark_used(std::uint32_t start, std::uint32_t len);
  void mark_free(std::uint32_t start, std::uint32_t len);

 private:
  std::uint64_t word(std::uint32_t order, std::uint32_t index) const noexcept {
    return bits_[offsets_[order] + index / 64];
  }
  std::uint64_t& word(std::uint32_t order, std::uint32_t index) noexcept {
    return bits_[offsets_[order] + index / 64];
  }
  bool test(std::uint32_t order, std::uint32_t index) const noexcept {
    return (word(order, index) >> (index % 64) & 1) != 0;
  }
  void put(std::uint32_t order, std::uint32_t index) noexcept;
  void drop(std::uint32_t order, std::uint32_t index) noexcept;
  void add_pieces(std::uint32_t start, std::uint32_t len) noexcept;
  void fill(std::uint32_t start, std::uint32_t len, bool free) noexcept;
  std::uint32_t order_of(std::uint32_t block) const noexcept;
  std::uint32_t find(std::uint32_t from, std::uint64_t flip) const noexcept;

  std::uint32_t orders_;
  std::uint32_t blocks_;
  std::uint32_t bitmap_bits_;           // 8 * block size
  std::vector<std::uint32_t> offsets_;  // of each order in bits_, in words
  // Order 0: a set bit is a free block. Order k: a set bit is a free buddy of that very order.
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> counts_;
  std::uint32_t free_ = 0;
  std::uint32_t fragments_ = 0;
  std::uint32_t first_free_ = 0;
};

}  // namespace jbdlab::ext4
