#pragma once

#include <cstdint>

#include "sim/ext4/alloc/block_supply.h"
#include "sim/ext4/extents/extent_tree.h"
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
  bool unwritten = false;  // new blocks become unwritten extents (UNWRIT_EXT); else written
  bool before_io = false;  // data will be written and converted afterwards: what is new is not
                           // merged with its neighbours, and a range inside an unwritten
                           // extent is cut out of it now (PRE_IO, SPLIT_NOMERGE)
  bool delayed_reserved = false;  // the blocks were reserved at write() (DELALLOC_RESERVE)
  bool no_normalise = false;      // fallocate: exactly this range (NO_NORMALIZE)
};
// Directory blocks and symbolic links: written at once.
inline constexpr MapFlags kMapMetadata{};
// Write-back of delayed data with dioread_nolock, the default (mpage_map_one_extent).
inline constexpr MapFlags kMapDelayed{
    .unwritten = true, .before_io = true, .delayed_reserved = true};

// The mapping of file blocks to disk blocks: ext4_map_blocks of fs/ext4/inode.c and
// ext4_ext_map_blocks of fs/ext4/extents.c, 6.18. The tree itself is extent_tree.h's business.
//
// Every change happens in the open handle of `thread`, in the order of the kernel's, so that the
// blocks of a transaction come out of doing it. All calls take inode.mapping_lock. Nothing is kept
// between calls but the bytes: there is no extent status tree, so a lookup waits for a change of
// the same file that is under way, where the kernel may answer from memory.
class ExtentMap {
 public:
  ExtentMap(Volume& volume, MetadataJournal& journal, InodeStore& inodes, BlockSupply& blocks)
      : s_{volume, journal, inodes, blocks} {}
  ExtentMap(const ExtentMap&) = delete;
  ExtentMap& operator=(const ExtentMap&) = delete;

  // Makes inode.block an empty root (ext4_ext_tree_init, without dirtying the inode).
  static void init_root(Inode& inode);

  // What is at `first`, up to `max_len` > 0 blocks of it; the len of a hole reaches to the next
  // extent or to max_len. Needs no handle. Errors: euclean.
  Task<KResult<Mapping>> lookup(Inode& inode, LogicalBlock first, std::uint32_t max_len);

  // The same, and gives [first, ...) blocks where it is a hole: one allocation, so the mapping that
  // returns may be shorter than `len` (call again for the rest). Without flags.delayed_reserved the
  // allocator counts i_blocks first; with it, reserved_blocks and Volume::delayed_blocks shrink and
  // the inode is dirtied after the insertion. Errors: enospc; euclean; eopnotsupp if an unwritten
  // extent is met with neither `unwritten` nor `before_io` (write-back under nodioread_nolock).
  Task<KResult<Mapping>> map(Thread& thread, Inode& inode, LogicalBlock first, std::uint32_t len,
                             MapFlags flags);

  // Data is on the disk: what is unwritten in [first, first + len) becomes written, and the inode
  // is dirtied once an extent (ext4_convert_unwritten_extents inside the open handle). Errors:
  // enospc, euclean.
  Task<KResult<void>> convert_unwritten(Thread& thread, Inode& inode, LogicalBlock first,
                                        std::uint32_t len);

 private:
  Task<KResult<Mapping>> allocate(Thread& thread, Inode& inode, ExtentTree& tree, ExtentPath& path,
                                  LogicalBlock first, std::uint32_t len, MapFlags flags);
  Task<KResult<void>> claim_delayed(Thread& thread, Inode& inode, std::uint32_t len);

  const ExtentServices s_;
};

// Credits that a handle asks for (ext4_meta_trans_blocks and its callers, fs/ext4/inode.c), without
// the block for revoke records.
//
// One extent anywhere (write-back, fallocate, direct I/O, truncate): the nodes of a tree of depth
// 5, split on every level, a bitmap and a descriptor block for each of them and for the data as far
// as there are so many, and the inode's own blocks (ext4_chunk_trans_blocks).
std::uint32_t write_credits(const Geometry& geometry) noexcept;
// The conversion of what one folio of at most `largest_folio` bytes holds, each block an extent of
// its own: what write-back reserves for the end of its I/O (ext4_do_writepages).
std::uint32_t convert_credits(const Geometry& geometry,
                              std::uint32_t largest_folio = 2u << 20) noexcept;

}  // namespace jbdlab::ext4
