#include "sim/ext4/alloc/preallocations.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "base/check.h"

namespace jbdlab::ext4 {
namespace {

// A list of a locality group is cut down to kKept when it has more than kMany entries.
constexpr std::size_t kMany = 8;
constexpr std::size_t kKept = 5;

std::size_t list_of(std::uint32_t blocks) noexcept {
  return std::min(static_cast<std::size_t>(std::bit_width(blocks)) - 1, LocalityGroup::kLists - 1);
}

std::uint64_t distance(FsBlock a, FsBlock b) noexcept {
  return a > b ? a.value() - b.value() : b.value() - a.value();
}

}  // namespace

Preallocations::Preallocations(sim::Engine& engine, Volume& volume, Bitmaps& bitmaps,
                               BlockGroups& groups, unsigned cpus)
    : volume_(volume), bitmaps_(bitmaps), groups_(groups) {
  for (unsigned i = 0; i < cpus; ++i) locality_groups_.emplace_back(engine);
}

bool Preallocations::use(AllocationContext& context) {
  if (!context.data) return false;
  const std::uint32_t logical = context.original.logical;
  if (context.inode.preallocations != nullptr) {
    const auto& windows = context.inode.preallocations->by_start;
    const auto behind = windows.upper_bound(logical);
    if (behind != windows.begin()) {
      Preallocation& window = *std::prev(behind)->second;
      if (logical < window.logical_end() && window.free > 0) {
        ++window.users;
        take_from_window(context, window);
        return true;
      }
    }
  }
  if (!context.small_file) return false;
  const FsBlock goal = block_of(volume_.geometry(), context.goal);
  LocalityGroup& locality = locality_groups_[context.cpu];
  Preallocation* nearest = nullptr;
  for (std::size_t i = list_of(context.original.len); i < LocalityGroup::kLists; ++i) {
    for (Preallocation* const area : locality.lists[i]) {
      if (area->free < context.original.len) continue;
      if (nearest == nullptr ||
          distance(goal, area->physical) < distance(goal, nearest->physical)) {
        nearest = area;
      }
    }
  }
  if (nearest == nullptr) return false;
  ++nearest->users;
  take_from_locality(context, *nearest);
  return true;
}

void Preallocations::take_from_window(AllocationContext& context, Preallocation& window) {
  const std::uint32_t skip = context.original.logical - window.logical.value();
  const std::uint32_t len = std::min(window.len - skip, context.original.len);
  CHECK(window.free >= len);
  const FsBlock start{window.physical.value() + skip};
  context.best.group = volume_.geometry().group_of(start);
  context.best.start = volume_.geometry().offset_in_group(start);
  context.best.len = len;
  context.status = AllocationContext::Status::found;
  context.preallocation = &window;
  window.free -= len;
}

void Preallocations::take_from_locality(AllocationContext& context, Preallocation& area) {
  context.best.group = volume_.geometry().group_of(area.physical);
  context.best.start = volume_.geometry().offset_in_group(area.physical);
  context.best.len = context.original.len;
  context.status = AllocationContext::Status::found;
  context.preallocation = &area;
}

// Which blocks of the file a window stands for that is shorter than was wanted: those at the end of
// the wanted window if the request begins among them, else those at its start if all of the request
// is there, else those from the request on (ext4_mb_new_inode_pa).
void Preallocations::place_in_file(AllocationContext& context) const {
  const std::uint32_t len = context.best.len;
  if (len >= context.normalised_len) return;
  const std::uint64_t wanted_end = std::uint64_t{context.goal.logical} + context.normalised_len;
  std::uint64_t start = wanted_end - len;
  if (context.original.logical < start) {
    start = context.goal.logical;
    if (context.original.logical_end() > start + len) start = context.original.logical;
  }
  context.best.logical = static_cast<std::uint32_t>(start);
}

void Preallocations::create(AllocationContext& context) {
  CHECK(context.original.len < context.best.len);
  std::list<Preallocation>& list = groups_.preallocations(context.best.group);
  Preallocation& item = list.emplace_front();
  item.self = list.begin();
  item.group = context.best.group;
  item.users = 1;
  item.len = item.free = context.best.len;
  item.physical = block_of(volume_.geometry(), context.best);
  if (context.small_file) {
    item.kind = Preallocation::Kind::locality_group;
    item.cpu = context.cpu;
    take_from_locality(context, item);  // on a list once it is known how much is left
    return;
  }
  place_in_file(context);
  item.kind = Preallocation::Kind::inode;
  item.inode = &context.inode;
  item.logical = LogicalBlock{context.best.logical};
  take_from_window(context, item);
  if (context.inode.preallocations == nullptr) {
    context.inode.preallocations = std::make_unique<InodePreallocations>();
  }
  const bool inserted =
      context.inode.preallocations->by_start.emplace(item.logical.value(), &item).second;
  CHECK(inserted);
}

void Preallocations::undo(AllocationContext& context) {
  if (context.preallocation == nullptr) {
    if (context.found_len > 0) {
      groups_.mark_free(context.best.group, {context.best.start, context.found_len});
    }
  } else if (context.preallocation->kind == Preallocation::Kind::inode) {
    context.preallocation->free += context.best.len;
  }
}

void Preallocations::finish(AllocationContext& context) {
  Preallocation* const item = context.preallocation;
  if (item == nullptr) return;
  if (item->kind == Preallocation::Kind::locality_group) {
    const std::uint32_t taken = context.best.len;
    std::vector<Preallocation*>& list = locality_groups_[item->cpu].lists[list_of(item->free)];
    std::erase(list, item);
    item->physical = FsBlock{item->physical.value() + taken};
    item->len -= taken;
    item->free -= taken;
    if (item->free > 0) insert_sorted(*item);
  }
  --item->users;
  if (item->users == 0 && item->free == 0) {
    unlink(*item);
    groups_.preallocations(item->group).erase(item->self);
  }
}

// Puts `area` on its list and trims the list if it has grown long (ext4_mb_add_n_trim).
void Preallocations::insert_sorted(Preallocation& area) {
  std::vector<Preallocation*>& list = locality_groups_[area.cpu].lists[list_of(area.free)];
  const auto larger = std::ranges::find_if(
      list, [&](const Preallocation* other) { return area.free < other->free; });
  list.insert(larger, &area);
  if (list.size() <= kMany) return;
  std::size_t left = list.size();
  std::vector<Preallocation*> dropped;
  for (Preallocation* const item : list) {
    if (item->users > 0) continue;
    dropped.push_back(item);
    if (--left <= kKept) break;
  }
  for (Preallocation* const item : dropped) release(*item);
}

// Takes an item out of its file or its locality group.
void Preallocations::unlink(Preallocation& item) {
  if (item.kind == Preallocation::Kind::inode) {
    item.inode->preallocations->by_start.erase(item.logical.value());
  } else if (item.free > 0) {
    std::erase(locality_groups_[item.cpu].lists[list_of(item.free)], &item);
  }
}

// Gives the unused blocks of an item back to the buddy, and forgets it.
void Preallocations::release(Preallocation& item) {
  unlink(item);
  const std::uint32_t start = volume_.geometry().offset_in_group(item.physical);
  if (item.kind == Preallocation::Kind::locality_group) {
    groups_.mark_free(item.group, {start, item.len});
  } else {
    // Which blocks of a window were taken, only the bitmap knows.
    const Buffer& buffer = bitmaps_.ready_block_bitmap(item.group);
    const ByteSpan bitmap = buffer.data.bytes();
    const std::uint32_t end = start + item.len;
    std::uint32_t freed = 0;
    for (std::uint32_t bit = next_clear_bit(bitmap, start, end); bit < end;) {
      const std::uint32_t next = next_set_bit(bitmap, bit, end);
      groups_.mark_free(item.group, {bit, next - bit});
      freed += next - bit;
      bit = next_clear_bit(bitmap, next, end);
    }
    CHECK(freed == item.free);
  }
  groups_.preallocations(item.group).erase(item.self);
}

void Preallocations::discard(Inode& inode) {
  if (inode.preallocations == nullptr) return;
  auto& windows = inode.preallocations->by_start;
  while (!windows.empty()) {
    Preallocation& window = *windows.begin()->second;
    CHECK(window.users == 0);
    release(window);
  }
}

std::uint32_t Preallocations::discard_group(GroupNo group) {
  std::list<Preallocation>& list = groups_.preallocations(group);
  std::uint32_t freed = 0;
  for (auto next = list.begin(); next != list.end();) {
    Preallocation& item = *next++;
    if (item.users > 0) continue;
    freed += item.free;
    release(item);
  }
  return freed;
}

std::uint32_t Preallocations::discard_all(std::uint32_t needed) {
  std::uint32_t freed = 0;
  for (std::uint32_t n = 0; n < groups_.count() && freed < needed; ++n) {
    freed += discard_group(GroupNo{n});
  }
  return freed;
}

}  // namespace jbdlab::ext4
