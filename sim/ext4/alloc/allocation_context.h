#pragma once

#include <cstdint>

#include "sim/ext4/alloc/block_supply.h"
#include "sim/ext4/alloc/buddy.h"
#include "sim/ext4/alloc/preallocation.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// A run of blocks of a file on the disk (struct ext4_free_extent).
struct FileRun {
  std::uint32_t logical = 0;
  GroupNo group;
  std::uint32_t start = 0;  // offset in the group
  std::uint32_t len = 0;

  std::uint64_t logical_end() const noexcept { return std::uint64_t{logical} + len; }
};

// The passes of a search, from the pickiest to the one that takes any free block (enum criteria).
enum class Criteria : std::uint8_t {
  power2_aligned,  // a buddy of the wanted size
  goal_len_fast,   // groups whose average free run is long enough
  best_avail_len,  // the same, and a shorter run is fine
  goal_len_slow,   // every group with enough free blocks
  any_free,
  exhausted,
};
constexpr bool is_expensive(Criteria criteria) noexcept {
  return criteria >= Criteria::goal_len_slow;
}

// One allocation under way (struct ext4_allocation_context).
struct AllocationContext {
  enum class Status : std::uint8_t { searching, found, stop };

  Inode& inode;
  unsigned cpu = 0;
  FileRun original{};                // what was asked for (ac_o_ex)
  FileRun goal{};                    // what is searched for (ac_g_ex)
  FileRun best{};                    // best so far; in the end, what the file gets (ac_b_ex)
  std::uint32_t found_len = 0;       // taken from the buddy, preallocation included (ac_f_ex)
  std::uint32_t normalised_len = 0;  // of the goal, before passes change it (ac_orig_goal_len)

  bool data = false;              // HINT_DATA
  bool no_preallocation = false;  // HINT_NOPREALLOC
  bool small_file = false;        // HINT_GROUP_ALLOC: from the locality group
  bool stream = false;            // STREAM_ALLOC
  bool try_goal = false;          // HINT_TRY_GOAL
  bool first_fit = false;         // HINT_FIRST

  Status status = Status::searching;
  Criteria criteria = Criteria::goal_len_fast;
  std::uint32_t order = 0;       // power of two that is searched for, 0 for none (ac_2order)
  std::uint32_t candidates = 0;  // runs looked at (ac_found)
  GroupNo prefetch_group{};
  std::uint32_t prefetch_count = 0;
  std::uint32_t prefetch_ios = 0;
  Preallocation* preallocation = nullptr;  // that the blocks come from (ac_pa)
};

inline FsBlock block_of(const Geometry& geometry, const FileRun& run) noexcept {
  return FsBlock{geometry.first_block_of(run.group).value() + run.start};
}

// Decides where blocks for data come from: small files from the locality group, larger ones from
// windows of their own, files that nobody writes any more from neither (ext4_mb_group_or_file).
void choose_source(AllocationContext& context, const Geometry& geometry);

// Turns the request into the window of the file that is set aside with it
// (ext4_mb_normalize_request): by its size a power of two, less what has blocks or a window
// already.
void normalise(AllocationContext& context, const AllocationRequest& request,
               const Geometry& geometry);

}  // namespace jbdlab::ext4
