#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/types.h"

namespace jbdlab::ext4 {

// A mapped block of the same file: where it is in the file and on the disk.
struct Neighbour {
  LogicalBlock logical;
  FsBlock physical;
};

// What the block allocator is asked for (struct ext4_allocation_request, fs/ext4/mballoc.h).
struct AllocationRequest {
  Inode& inode;
  LogicalBlock logical{};  // first block of the file that wants a place
  FsBlock goal{};          // where it would be best
  std::uint32_t len = 1;   // blocks wanted; fewer may be given
  // Nearest mapped blocks before and behind `logical`: the last block of the extent on the left,
  // the first of the one on the right (lleft/pleft, lright/pright).
  std::optional<Neighbour> left{}, right{};
  bool data = true;               // contents of a regular file: may be preallocated (HINT_DATA)
  bool delayed_reserved = false;  // counted already when it was delayed (DELALLOC_RESERVED): the
                                  // allocator leaves i_blocks alone, its caller adds to them
  bool no_normalise = false;      // exactly what is asked for (HINT_NOPREALLOC: fallocate)
  bool try_goal = false;          // the goal itself if it is free (HINT_TRY_GOAL)
  bool use_reserved = false;      // may use the last blocks, which the kernel keeps for tree blocks
                                  // of conversions that must not fail (USE_RESERVED)
};

// One run of blocks that now belongs to the file.
struct Allocation {
  FsBlock start;
  std::uint32_t len = 0;
};

// Where the blocks of files come from and go to: the block allocator, as those that map file blocks
// to disk blocks see it (ext4_mb_new_blocks, ext4_free_blocks).
class BlockSupply {
 public:
  virtual ~BlockSupply() = default;

  // At least 1 and at most request.len blocks, marked in use in the open handle of `thread`. Unless
  // delayed_reserved, inode.sectors has grown and the inode is dirtied (nested start) before the
  // bitmap is. Errors: enospc.
  virtual Task<KResult<Allocation>> allocate(Thread& thread, AllocationRequest request) = 0;
  // Gives [first, first + len) back: free again when the transaction has committed. inode.sectors
  // shrinks and the inode is dirtied. `metadata`: a tree or directory block; its buffer is
  // forgotten and its older images are revoked.
  virtual Task<KResult<void>> free(Thread& thread, Inode& inode, FsBlock first, std::uint32_t len,
                                   bool metadata) = 0;
  // Where the first block of a file should go (ext4_inode_to_goal_block).
  virtual FsBlock inode_goal(const Thread& thread, const Inode& inode) = 0;
  // Returns what was preallocated for the file alone (ext4_discard_preallocations): memory only.
  virtual void discard_preallocations(Inode& inode) = 0;
};

}  // namespace jbdlab::ext4
