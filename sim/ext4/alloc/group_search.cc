#include "sim/ext4/alloc/group_search.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kMaxToScan = 200;      // s_mb_max_to_scan
constexpr std::uint32_t kMinToScan = 10;       // s_mb_min_to_scan
constexpr std::uint32_t kListedFrom = 16;      // groups: MB_DEFAULT_LINEAR_SCAN_THRESHOLD
constexpr std::uint32_t kBestAvailTrim = 3;    // orders: s_mb_best_avail_max_trim_order
constexpr std::uint32_t kDirectoryScheme = 4;  // EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME
constexpr std::uint32_t kLargestRead = 65536;  // BLK_MAX_SEGMENT_SIZE, in the kernel's units

std::uint32_t width(std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(value));
}

Criteria next(Criteria criteria) noexcept {
  return static_cast<Criteria>(static_cast<std::uint8_t>(criteria) + 1);
}

}  // namespace

GroupSearch::GroupSearch(Volume& volume, BlockGroups& groups, Preallocations& preallocations,
                         unsigned cpus, std::uint32_t linear_groups)
    : volume_(volume),
      groups_(groups),
      preallocations_(preallocations),
      listed_(groups.count() >= kListedFrom),
      linear_groups_(linear_groups) {
  const Geometry& g = volume.geometry();
  // ext4_mb_init_backend: eight reads of a flex group's bitmaps at a time.
  prefetch_ = 32;
  if ((g.incompat & kIncompatFlexBg) != 0) {
    prefetch_ = 8 * std::min(g.groups_per_flex, kLargestRead >> (g.block_bits - 9));
  }
  prefetch_ = std::min(prefetch_, g.groups);
  prefetch_limit_ = std::min(4 * prefetch_, g.groups);
  last_stream_groups_.resize(std::max(1U, std::min(std::uint32_t{cpus}, (g.groups + 3) / 4)));
}

Task<KResult<void>> GroupSearch::run(AllocationContext& context) {
  KResult<void> ok = co_await find_by_goal(context);
  if (!ok || context.status == Status::found) co_return ok;

  context.order = 0;
  if (const std::uint32_t w = width(context.goal.len);
      std::has_single_bit(context.goal.len) && w >= 2 && w <= groups_.orders()) {
    context.order = w - 1;
  }
  if (context.stream) {
    context.goal.group =
        last_stream_groups_[context.inode.ino.value() % last_stream_groups_.size()];
    context.try_goal = false;
  }
  context.criteria = context.order > 0 ? Criteria::power2_aligned : Criteria::goal_len_fast;
  for (;;) {
    while (context.criteria != Criteria::exhausted && context.status == Status::searching) {
      ok = co_await pass(context);
      if (!ok) break;
    }
    if (!ok || context.status == Status::found || context.best.len == 0 || context.first_fit) break;
    // The search has ended without an exact match: the best that it saw will do.
    ok = co_await take_best_late(context);
    if (!ok || context.status == Status::found) break;
    // Somebody took it while we looked elsewhere. Now anything will do.
    context.best = {};
    context.status = Status::searching;
    context.first_fit = true;
    context.criteria = Criteria::any_free;
  }
  if (context.prefetch_count > 0) {
    co_await groups_.finish_prefetch(context.prefetch_group, context.prefetch_count);
  }
  co_return ok;
}

Task<KResult<void>> GroupSearch::find_by_goal(AllocationContext& context) {
  const GroupNo group = context.goal.group;
  if (!context.try_goal || groups_.free(group) == 0) co_return KResult<void>{};
  if (!groups_.loaded(group)) {
    const KResult<void> ok = co_await groups_.load(group);
    if (!ok) co_return ok;
  }
  const GroupRun run = groups_.buddy(group).find_extent(context.goal.start, context.goal.len);
  if (run.len >= context.goal.len) {
    ++context.candidates;
    context.best.group = group;
    context.best.start = run.start;
    context.best.len = run.len;
    take_best(context);
  }
  co_return KResult<void>{};
}

// One pass over the groups (ext4_mb_scan_groups); moves on to the next criteria if it finds
// nothing.
Task<KResult<void>> GroupSearch::pass(AllocationContext& context) {
  std::uint32_t group = context.goal.group.value();
  context.prefetch_group = context.goal.group;
  context.prefetch_count = 0;
  if (!listed_ || is_expensive(context.criteria)) {
    const KResult<void> ok = co_await linear(context, group, groups_.count());
    if (ok && context.status == Status::searching) context.criteria = next(context.criteria);
    co_return ok;
  }
  if (linear_groups_ > 0) {
    const KResult<void> ok = co_await linear(context, group, linear_groups_);
    if (!ok || context.status != Status::searching) co_return ok;
  }
  switch (context.criteria) {
    case Criteria::power2_aligned:
      co_return co_await power2_pass(context, group);
    case Criteria::goal_len_fast:
      co_return co_await goal_fast_pass(context, group);
    default:
      co_return co_await best_available_pass(context, group);
  }
}

Task<KResult<void>> GroupSearch::linear(AllocationContext& context, std::uint32_t& group,
                                        std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (worth_trying(context, GroupNo{group})) {
      const KResult<void> ok = co_await try_group(context, GroupNo{group});
      if (!ok || context.status != Status::searching) co_return ok;
    }
    if (++group >= groups_.count()) group = 0;
  }
  co_return KResult<void>{};
}

Task<KResult<void>> GroupSearch::listed(AllocationContext& context, const GroupIndex& index,
                                        std::uint32_t in_class, std::uint32_t start,
                                        std::uint32_t end) {
  for (auto group = index.next(in_class, start, end); group.has_value();
       group = index.next(in_class, group->value() + 1, end)) {
    if (!worth_trying(context, *group)) continue;
    const KResult<void> ok = co_await try_group(context, *group);
    if (!ok || context.status != Status::searching) co_return ok;
  }
  co_return KResult<void>{};
}

// The three passes over lists go from the goal's group to the end, then from the start to it.

Task<KResult<void>> GroupSearch::power2_pass(AllocationContext& context, std::uint32_t start) {
  const std::uint32_t ranges[2][2] = {{start, groups_.count()}, {0, start}};
  for (const auto& range : ranges) {
    for (std::uint32_t order = context.order; order < groups_.orders(); ++order) {
      const KResult<void> ok =
          co_await listed(context, groups_.by_largest_order(), order, range[0], range[1]);
      if (!ok || context.status != Status::searching) co_return ok;
    }
  }
  context.criteria = Criteria::goal_len_fast;
  co_return KResult<void>{};
}

Task<KResult<void>> GroupSearch::goal_fast_pass(AllocationContext& context, std::uint32_t start) {
  const std::uint32_t ranges[2][2] = {{start, groups_.count()}, {0, start}};
  for (const auto& range : ranges) {
    for (std::uint32_t size = groups_.fragment_class(context.goal.len); size < groups_.orders();
         ++size) {
      const KResult<void> ok =
          co_await listed(context, groups_.by_fragment_size(), size, range[0], range[1]);
      if (!ok || context.status != Status::searching) co_return ok;
    }
  }
  context.criteria = context.data ? Criteria::best_avail_len : Criteria::goal_len_slow;
  co_return KResult<void>{};
}

// Wants less and less, down to an eighth of the goal, but not less than was asked for.
Task<KResult<void>> GroupSearch::best_available_pass(AllocationContext& context,
                                                     std::uint32_t start) {
  const std::uint32_t order = width(context.goal.len) - 1;
  std::uint32_t least = order > kBestAvailTrim ? order - kBestAvailTrim : 0;
  if (1U << least < context.original.len) least = width(context.original.len);
  const std::uint32_t ranges[2][2] = {{start, groups_.count()}, {0, start}};
  for (const auto& range : ranges) {
    for (std::uint32_t now = order + 1; now-- > least;) {
      context.goal.len = 1U << now;
      const KResult<void> ok =
          co_await listed(context, groups_.by_fragment_size(),
                          groups_.fragment_class(context.goal.len), range[0], range[1]);
      if (!ok || context.status != Status::searching) co_return ok;
    }
  }
  context.goal.len = context.normalised_len;
  context.criteria = Criteria::goal_len_slow;
  co_return KResult<void>{};
}

Task<KResult<void>> GroupSearch::try_group(AllocationContext& context, GroupNo group) {
  if (!groups_.loaded(group)) {
    const KResult<void> ok = co_await groups_.load(group);
    if (!ok) co_return ok;
  }
  if (good(context, group)) scan(context, group);
  co_return KResult<void>{};
}

void GroupSearch::might_prefetch(AllocationContext& context, GroupNo group) {
  if (context.prefetch_group != group) return;
  if (!is_expensive(context.criteria) && context.prefetch_ios >= prefetch_limit_) return;
  std::uint32_t count = prefetch_;
  if ((volume_.geometry().incompat & kIncompatFlexBg) != 0) {
    const std::uint32_t per_flex = volume_.geometry().groups_per_flex;
    count = std::min(per_flex - group.value() % per_flex, prefetch_);
  }
  context.prefetch_count = count;
  context.prefetch_group = groups_.prefetch(group, count, context.prefetch_ios);
}

// What can be told without the buddy, and whether a cheap pass may make it
// (ext4_mb_good_group_nolock).
bool GroupSearch::worth_trying(AllocationContext& context, GroupNo group) {
  might_prefetch(context, group);
  const std::uint32_t free = groups_.free(group);
  if (free == 0) return false;
  if (context.criteria < Criteria::any_free && free < context.goal.len) return false;
  if (groups_.loaded(group) || is_expensive(context.criteria)) return true;
  const Geometry& g = volume_.geometry();
  // Without flex groups none is the first of one.
  const bool first_of_flex = g.groups_per_flex > 1 && group.value() % g.groups_per_flex == 0;
  const bool uninit = g.desc_csum() && (volume_.desc(group).flags() & GroupDesc::kBlockUninit) != 0;
  return first_of_flex || uninit;
}

bool GroupSearch::good(const AllocationContext& context, GroupNo group) {
  const Buddy& buddy = groups_.buddy(group);
  if (buddy.free() == 0) return false;
  switch (context.criteria) {
    case Criteria::power2_aligned: {
      // The first group of a flex group is kept for metadata and directories.
      const std::uint32_t per_flex = volume_.geometry().groups_per_flex;
      if (context.data && per_flex >= kDirectoryScheme && group.value() % per_flex == 0)
        return false;
      return buddy.free() >= context.goal.len && buddy.largest_order() >= context.order;
    }
    case Criteria::goal_len_fast:
    case Criteria::best_avail_len:
      return buddy.free() / buddy.fragments() >= context.goal.len;
    case Criteria::goal_len_slow:
      return buddy.free() >= context.goal.len;
    default:
      return true;
  }
}

void GroupSearch::scan(AllocationContext& context, GroupNo group) {
  if (context.criteria == Criteria::power2_aligned) {
    scan_buddies(context, group);
  } else {
    scan_runs(context, group);
  }
}

// The lowest buddy of the smallest order that is enough (ext4_mb_simple_scan_group).
void GroupSearch::scan_buddies(AllocationContext& context, GroupNo group) {
  const Buddy& buddy = groups_.buddy(group);
  for (std::uint32_t order = context.order; order < buddy.orders(); ++order) {
    const std::optional<std::uint32_t> start = buddy.lowest_buddy(order);
    if (!start) continue;
    ++context.candidates;
    context.best.group = group;
    context.best.start = *start;
    context.best.len = 1U << order;
    take_best(context);
    return;
  }
}

// Free runs from the lowest on (ext4_mb_complex_scan_group).
void GroupSearch::scan_runs(AllocationContext& context, GroupNo group) {
  const Buddy& buddy = groups_.buddy(group);
  const std::uint32_t size = volume_.geometry().blocks_per_group;
  for (std::uint32_t at = buddy.next_free(buddy.first_free());
       at < size && context.status == Status::searching; at = buddy.next_free(at)) {
    if (!is_expensive(context.criteria)) {
      const std::uint32_t end = buddy.next_used(at);
      if (end - at < context.goal.len) {
        at = end;
        continue;
      }
    }
    const GroupRun run = buddy.find_extent(at, context.goal.len);
    measure(context, group, run);
    at += run.len;
  }
  check_limits(context, true);
}

void GroupSearch::measure(AllocationContext& context, GroupNo group, GroupRun run) {
  ++context.candidates;
  FileRun& best = context.best;
  const FileRun candidate{best.logical, group, run.start, run.len};
  const std::uint32_t wanted = context.goal.len;
  if (context.first_fit || run.len == wanted) {
    best = candidate;
    take_best(context);
    return;
  }
  if (best.len == 0) {
    best = candidate;
    return;
  }
  // Long enough beats too short; of those too short the longest, of the others the shortest.
  const bool better =
      best.len < wanted ? run.len > best.len : run.len > wanted && run.len < best.len;
  if (better) best = candidate;
  check_limits(context, false);
}

void GroupSearch::check_limits(AllocationContext& context, bool group_done) {
  if (context.status == Status::found) return;
  if (context.candidates > kMaxToScan && !context.first_fit) {
    context.status = Status::stop;
    return;
  }
  if (context.best.len < context.goal.len) return;
  if (group_done || context.candidates > kMinToScan) take_best(context);
}

void GroupSearch::take_best(AllocationContext& context) {
  CHECK(context.status != Status::found);
  FileRun& best = context.best;
  best.len = std::min(best.len, context.goal.len);
  best.logical = context.goal.logical;
  groups_.mark_used(best.group, {best.start, best.len});
  context.found_len = best.len;
  context.status = Status::found;
  if (context.stream) {
    last_stream_groups_[context.inode.ino.value() % last_stream_groups_.size()] = best.group;
  }
  if (context.original.len < best.len) preallocations_.create(context);
}

// Other allocations may have come in between since the best run was seen.
Task<KResult<void>> GroupSearch::take_best_late(AllocationContext& context) {
  FileRun& best = context.best;
  if (!groups_.loaded(best.group)) {
    const KResult<void> ok = co_await groups_.load(best.group);
    if (!ok) co_return ok;
  }
  const GroupRun run = groups_.buddy(best.group).find_extent(best.start, best.len);
  if (run.len > 0) {
    best.start = run.start;
    best.len = run.len;
    take_best(context);
  }
  co_return KResult<void>{};
}

}  // namespace jbdlab::ext4
