#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/ext4/alloc/block_supply.h"
#include "sim/ext4/extents/extent_block.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/journal.h"
#include "sim/ext4/types.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// The way from the root of a tree to a leaf (struct ext4_ext_path): at each level the node and the
// entry taken. Level 0 is the root, level `depth` the leaf. Good until the tree changes.
struct ExtentPath {
  struct Level {
    Buffer* buffer = nullptr;  // null: the root, in the inode
    std::uint32_t slot = 0;    // the last entry that begins at or before the block, or the first
  };
  std::array<Level, kMaxExtentDepth + 1> levels{};
  std::uint32_t depth = 0;
  bool empty = true;  // the leaf has no entry

  Level& leaf() { return levels[depth]; }
  const Level& leaf() const { return levels[depth]; }
};

// What an extent tree needs around it; all outlive it.
struct ExtentServices {
  Volume& volume;
  MetadataJournal& journal;
  InodeStore& inodes;
  BlockSupply& blocks;
};

// The extent tree of one file, as one operation on it sees it (fs/ext4/extents.c, 6.18). The caller
// holds inode.mapping_lock. What changes the tree needs a thread with an open handle and takes
// write access to nodes and dirties them in the kernel's order.
class ExtentTree {
 public:
  ExtentTree(const ExtentServices& services, Inode& inode, Thread* thread) noexcept
      : s_(services), inode_(inode), thread_(thread) {}

  // How insert() places an extent.
  struct InsertMode {
    bool merge = true;              // with its neighbours, where they continue it (not before I/O)
    bool delayed_reserved = false;  // tree blocks are counted like delayed data
  };

  // Descends to where `block` is or would be (ext4_find_extent). Every node is checked before it is
  // believed. Errors: euclean.
  Task<KResult<void>> find(LogicalBlock block, ExtentPath& path);

  // The entry at the end of the path; none in an empty tree.
  std::optional<Extent> extent_at(const ExtentPath& path) const;
  // Where the next extent behind the path's entry begins (ext4_ext_next_allocated_block). For the
  // next leaf that is what the index says, without reading it.
  std::optional<LogicalBlock> next_allocated(const ExtentPath& path) const;
  // The last mapped block before `block`, and the first one behind it. `block` is a hole.
  std::optional<Neighbour> left_neighbour(const ExtentPath& path, LogicalBlock block) const;
  Task<KResult<std::optional<Neighbour>>> right_neighbour(const ExtentPath& path,
                                                          LogicalBlock block);
  // Where `block` should go, seen from the path (ext4_ext_find_goal).
  FsBlock goal(const ExtentPath& path, LogicalBlock block) const;

  // Puts `extent` into the tree; no block of it is mapped yet, and `path` was found for its first
  // block. Splits nodes and grows the tree as needed (ext4_ext_insert_extent). `path` is stale
  // then. Errors: enospc, euclean.
  Task<KResult<void>> insert(ExtentPath& path, Extent extent, InsertMode mode);

  // Cuts the extent at the path's end so that [first, first + len) of it is one of its own, of the
  // same kind (ext4_split_convert_extents before I/O). The leaf is dirtied even if nothing is to be
  // cut. Precondition: the extent contains the range.
  Task<KResult<void>> split_out(ExtentPath& path, LogicalBlock first, std::uint32_t len);

  // Marks the extent at the path's end written and merges it with its neighbours; a tree that fits
  // into the root again collapses.
  Task<KResult<void>> mark_written(ExtentPath& path);

 private:
  using Level = ExtentPath::Level;

  NodeRules rules(std::uint32_t depth, bool root) const noexcept;
  std::uint32_t block_capacity() const noexcept;
  std::uint32_t checksum_seed() const noexcept;
  ExtentNode node(const Level& level) const;
  ByteSpan bytes(const Level& level) const;
  ExtentNodeEditor edit(const Level& level);
  ExtentNodeEditor edit_new(Buffer& buffer, std::uint32_t depth);

  KResult<std::optional<FsBlock>> descend(LogicalBlock block, ExtentPath& path) const;
  KResult<void> check_block(Buffer& buffer, std::uint32_t depth, LogicalBlock first) const;
  std::optional<LogicalBlock> next_from(const ExtentPath& path, std::uint32_t level) const;

  Task<> access(const Level& level);
  Task<KResult<void>> dirty(const Level& level);
  Task<KResult<FsBlock>> new_block(FsBlock goal, bool try_goal, InsertMode mode);

  bool merge_right(const Level& leaf, std::uint32_t slot);
  Task<KResult<void>> merge_around(ExtentPath& path, std::uint32_t slot);
  Task<KResult<void>> merge_up(ExtentPath& path);
  Task<KResult<void>> correct_indexes(const ExtentPath& path);
  Task<KResult<void>> make_room(ExtentPath& path, LogicalBlock block, InsertMode mode);
  Task<KResult<void>> grow(InsertMode mode);
  Task<KResult<void>> split(const ExtentPath& path, std::uint32_t at, LogicalBlock block,
                            InsertMode mode);
  Task<KResult<void>> fill_split(const ExtentPath& path, std::uint32_t at, LogicalBlock block,
                                 const std::array<FsBlock, kMaxExtentDepth>& fresh);
  Task<KResult<void>> insert_index(const Level& level, ExtentIndex index);
  Task<KResult<void>> split_at(ExtentPath& path, LogicalBlock at);

  const ExtentServices& s_;
  Inode& inode_;
  Thread* thread_;  // null: looks only
};

}  // namespace jbdlab::ext4
