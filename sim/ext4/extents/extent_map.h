#pragma once

#include <cstdint>

#include "sim/ext4/alloc/block_supply.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/journal.h"
#include "sim/ext4/types.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// What holds the blocks of a stretch of a file. An unwritten extent has blocks and reads as zeros.
enum class MappingState : std::uint8_t { hole, written, unwritten };

struct Mapping {
  LogicalBlock first;
  std::uint32_t len = 0;
  FsBlock physical;  // of `first`; meaningless for a hole
  MappingState state = MappingState::hole;
  bool is_new = false;  // allocated by this call
};

// How map() makes what is missing (EXT4_GET_BLOCKS_* of fs/ext4/ext4.h).
struct MapFlags {
  bool unwritten = false;         // new blocks become unwritten extents (UNWRIT_EXT); else written
  bool before_io = false;         // data will be written and converted afterwards: a range inside an
                                  // unwritten extent is split off it now (PRE_IO)
  bool delayed_reserved = false;  // the blocks were reserved at write() (DELALLOC_RESERVE)
  bool no_normalise = false;      // fallocate: exactly this range (NO_NORMALIZE)
};

// The mapping of file blocks to disk blocks: extent trees, and what changes them
// (fs/ext4/extents.c and ext4_map_blocks of fs/ext4/inode.c, 6.18).
//
// A tree has its root in inode.block (4 entries) and, below it, blocks of the file system with up to
// (block size - 12) / 12 entries; depth is 0 to 5. Every change happens in the open handle of
// `thread`, in the order of the kernel's, so that the blocks of a transaction come out of doing it.
// Nothing is kept between calls but the bytes.
class ExtentMap {
 public:
  ExtentMap(Volume& volume, MetadataJournal& journal, InodeStore& inodes, BlockSupply& blocks)
      : volume_(volume), journal_(journal), inodes_(inodes), blocks_(blocks) {}

  // Makes inode.block an empty root (ext4_ext_tree_init, without dirtying the inode).
  static void init_root(Inode& inode);

  // What is at `first`, up to `max_len` blocks of it; the len of a hole reaches to the next extent or
  // to max_len. Needs no handle. Errors: euclean.
  Task<KResult<Mapping>> lookup(Inode& inode, LogicalBlock first, std::uint32_t max_len);

  // The same, and gives [first, ...) blocks where it is a hole: one allocation, so the mapping that
  // returns may be shorter than `len` (call again for the rest). Without flags.delayed_reserved the
  // allocator counts i_blocks first; with it, reserved_blocks and Volume::delayed_blocks shrink and
  // the inode is dirtied after the insertion. Errors: enospc, euclean.
  Task<KResult<Mapping>> map(Thread& thread, Inode& inode, LogicalBlock first, std::uint32_t len,
                             MapFlags flags);

  // Data is on the disk: the unwritten part of [first, first + len) becomes written
  // (ext4_convert_unwritten_extents inside the open handle), and the inode is dirtied.
  Task<KResult<void>> convert_unwritten(Thread& thread, Inode& inode, LogicalBlock first,
                                        std::uint32_t len);

 private:
  Volume& volume_;
  MetadataJournal& journal_;
  InodeStore& inodes_;
  BlockSupply& blocks_;
};

// Credits that a handle asks for (ext4_meta_trans_blocks and its callers, fs/ext4/inode.c), without
// the block for revoke records.
//
// W: allocation of one extent anywhere (write-back, fallocate, direct I/O, truncate): index and leaf
// blocks of a tree of depth 5, split once on each level, bitmap and descriptor block of each group
// that they may fall into, and the inode's own blocks.
std::uint32_t write_credits(const Geometry& geometry) noexcept;
// V: conversion of an unwritten extent after its data was written: the reserved part of write-back.
std::uint32_t convert_credits(const Geometry& geometry) noexcept;

}  // namespace jbdlab::ext4
