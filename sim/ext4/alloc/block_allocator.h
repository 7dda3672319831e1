#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "sim/ext4/alloc/bitmaps.h"
#include "sim/ext4/alloc/block_groups.h"
#include "sim/ext4/alloc/block_supply.h"
#include "sim/ext4/alloc/group_search.h"
#include "sim/ext4/alloc/preallocations.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/journal.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// What the machine and the mount options say of block allocation.
struct BlockAllocatorConfig {
  unsigned cpus = 2;               // each has its own area for small files
  bool delayed_allocation = true;  // mount option delalloc
  bool writeback_data = false;     // data=writeback: freed data blocks may be reused at once
  bool rotational = false;         // disk: look at a few neighbouring groups before the lists
};

// The multiblock allocator: places the blocks of files, keeps block bitmaps and the free counts of
// the descriptors, and the areas and windows that are set aside in memory.
// Source: fs/ext4/mballoc.c and fs/ext4/balloc.c, Linux 6.18.
//
// Not modelled: the kernel's thread that prefetches bitmaps some seconds after mount, discard,
// stripes, and that a group whose lock is held is skipped (a search here never stops inside a
// group).
class BlockAllocator : public BlockSupply {
 public:
  // All references outlive the allocator; the volume is loaded.
  BlockAllocator(sim::Engine& engine, Volume& volume, Bitmaps& bitmaps, MetadataJournal& journal,
                 InodeStore& inodes, const BlockAllocatorConfig& config = {});

  Task<KResult<Allocation>> allocate(Thread& thread, AllocationRequest request) override;
  // Errors: euclean, if the blocks are not in use or not of this file system.
  Task<KResult<void>> free(Thread& thread, Inode& inode, FsBlock first, std::uint32_t len,
                           bool metadata) override;
  FsBlock inode_goal(const Thread& thread, const Inode& inode) override;
  // The caller holds the inode's mapping lock: no allocation for it is under way.
  void discard_preallocations(Inode& inode) override { preallocations_.discard(inode); }

  // Reserves `len` blocks that write() will want later (ext4_claim_free_clusters); gives them back.
  // Errors: enospc. The program runs as root: the blocks reserved for root count as free.
  KResult<void> claim_delayed(std::uint32_t len);
  void release_delayed(std::uint32_t len);

  // Transaction `tid` has committed: what it freed may be used again (ext4_process_freed_data).
  void on_commit(Tid tid);
  // Blocks that wait for that: a commit would help an allocation that found no space.
  std::uint64_t free_pending() const noexcept { return free_pending_; }

 private:
  struct Freed {
    Tid tid;
    GroupNo group;
    GroupRun run;
  };

  bool has_free(std::uint64_t len, bool use_reserved) const;
  AllocationContext make_context(const Thread& thread, const AllocationRequest& request) const;
  Task<KResult<void>> find(AllocationContext& context, const AllocationRequest& request);
  Task<KResult<Allocation>> place(Thread& thread, const AllocationRequest& request);
  Task<KResult<void>> mark(Thread& thread, GroupNo group, GroupRun run, bool used);
  Task<KResult<void>> free_in_group(Thread& thread, Inode& inode, GroupNo group, GroupRun run,
                                    bool metadata);

  Volume& volume_;
  Bitmaps& bitmaps_;
  MetadataJournal& journal_;
  InodeStore& inodes_;
  const BlockAllocatorConfig config_;
  BlockGroups groups_;
  Preallocations preallocations_;
  GroupSearch search_;
  std::uint64_t kept_blocks_;                // for conversions that must not fail (s_resv_clusters)
  std::array<std::vector<Freed>, 2> freed_;  // by the parity of the tid, as at most two are open
  std::uint64_t free_pending_ = 0;
};

}  // namespace jbdlab::ext4
