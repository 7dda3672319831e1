#pragma once

#include <cstdint>
#include <vector>

#include "sim/ext4/alloc/allocation_context.h"
#include "sim/ext4/alloc/block_groups.h"
#include "sim/ext4/alloc/preallocations.h"

namespace jbdlab::ext4 {

// Finds free blocks in the buddies (ext4_mb_regular_allocator): at the goal itself, or else pass by
// pass through the groups. Below 16 groups a pass takes them in order from the goal's on; from 16
// groups on the cheap passes take them from lists by the size of what is free in them
// (mb_optimize_scan), where a group is only once its buddy is in memory.
class GroupSearch {
 public:
  // `cpus` of the machine; `linear_groups` are tried in order before the lists (of rotating disks).
  GroupSearch(Volume& volume, BlockGroups& groups, Preallocations& preallocations, unsigned cpus,
              std::uint32_t linear_groups);

  // On return context.status is found, and the blocks are used in the buddy; or nothing fits.
  // Errors: euclean.
  Task<KResult<void>> run(AllocationContext& context);

 private:
  using Status = AllocationContext::Status;

  Task<KResult<void>> find_by_goal(AllocationContext& context);
  Task<KResult<void>> pass(AllocationContext& context);
  Task<KResult<void>> linear(AllocationContext& context, std::uint32_t& group, std::uint32_t count);
  Task<KResult<void>> power2_pass(AllocationContext& context, std::uint32_t start);
  Task<KResult<void>> goal_fast_pass(AllocationContext& context, std::uint32_t start);
  Task<KResult<void>> best_available_pass(AllocationContext& context, std::uint32_t start);
  Task<KResult<void>> listed(AllocationContext& context, const GroupIndex& index,
                             std::uint32_t in_class, std::uint32_t start, std::uint32_t end);
  Task<KResult<void>> try_group(AllocationContext& context, GroupNo group);

  void might_prefetch(AllocationContext& context, GroupNo group);
  bool worth_trying(AllocationContext& context, GroupNo group);
  bool good(const AllocationContext& context, GroupNo group);
  void scan(AllocationContext& context, GroupNo group);
  void scan_buddies(AllocationContext& context, GroupNo group);
  void scan_runs(AllocationContext& context, GroupNo group);
  void measure(AllocationContext& context, GroupNo group, GroupRun run);
  void check_limits(AllocationContext& context, bool group_done);
  void take_best(AllocationContext& context);
  Task<KResult<void>> take_best_late(AllocationContext& context);

  Volume& volume_;
  BlockGroups& groups_;
  Preallocations& preallocations_;
  const bool listed_;  // optimised scan
  const std::uint32_t linear_groups_;
  std::uint32_t prefetch_;                   // groups at a time
  std::uint32_t prefetch_limit_;             // reads of one allocation
  std::vector<GroupNo> last_stream_groups_;  // where large files went last, by inode number
};

}  // namespace jbdlab::ext4
