#pragma once

#include <cstdint>
#include <deque>

#include "sim/ext4/alloc/allocation_context.h"
#include "sim/ext4/alloc/block_groups.h"
#include "sim/ext4/alloc/preallocation.h"

namespace jbdlab::ext4 {

// All preallocations of a mounted file system: makes them, lets allocations take from them, gives
// their blocks back to the buddies. Memory only; nothing here waits.
// Source: fs/ext4/mballoc.c, 6.18, ext4_mb_use_preallocated to ext4_mb_discard_preallocations.
class Preallocations {
 public:
  Preallocations(sim::Engine& engine, Volume& volume, Bitmaps& bitmaps, BlockGroups& groups,
                 unsigned cpus);

  LocalityGroup& locality_group(unsigned cpu) { return locality_groups_[cpu]; }

  // Takes the blocks from a window of the file, or for a small file from the locality group of its
  // CPU; false if there is none that fits.
  bool use(AllocationContext& context);
  // Makes what the search found a preallocation, and takes the wanted blocks from it.
  // Precondition: found is longer than what was asked for.
  void create(AllocationContext& context);
  // The blocks are marked on the disk, or the allocation has failed and context.best.len is 0: a
  // locality group moves on, and what is used up goes away.
  void finish(AllocationContext& context);
  // Before finish(), when the blocks could not be marked.
  void undo(AllocationContext& context);

  void discard(Inode& inode);
  // Gives back windows of all groups in turn until `needed` blocks are free again; returns how
  // many.
  std::uint32_t discard_all(std::uint32_t needed);

 private:
  void take_from_window(AllocationContext& context, Preallocation& window);
  void take_from_locality(AllocationContext& context, Preallocation& area);
  void place_in_file(AllocationContext& context) const;
  void insert_sorted(Preallocation& area);
  void unlink(Preallocation& item);
  void release(Preallocation& item);
  std::uint32_t discard_group(GroupNo group);

  Volume& volume_;
  Bitmaps& bitmaps_;
  BlockGroups& groups_;
  std::deque<LocalityGroup> locality_groups_;
};

}  // namespace jbdlab::ext4
