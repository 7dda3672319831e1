#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "sim/ext4/alloc/bitmaps.h"
#include "sim/ext4/alloc/buddy.h"
#include "sim/ext4/alloc/preallocation.h"
#include "sim/ext4/types.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// Groups in classes by a logarithm, each class ordered by group number: the kernel's arrays of
// xarrays since 6.17 (s_mb_largest_free_orders, s_mb_avg_fragment_size).
class GroupIndex {
 public:
  GroupIndex(std::uint32_t classes, std::uint32_t groups);
  // Puts `group` into class `to` (nowhere: nullopt) and out of where it was.
  void move(GroupNo group, std::optional<std::uint32_t> to);
  // First group of the class in [from, end).
  std::optional<GroupNo> next(std::uint32_t in_class, std::uint32_t from,
                              std::uint32_t end) const noexcept;

 private:
  std::size_t words_;
  std::vector<std::vector<std::uint64_t>> members_;
  std::vector<std::uint32_t> class_of_;
};

// What the block allocator keeps in memory of each group: its buddy, made when it is first needed,
// and the preallocations that lie in it (struct ext4_group_info).
class BlockGroups {
 public:
  BlockGroups(Volume& volume, Bitmaps& bitmaps);

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint32_t orders() const noexcept { return orders_; }
  // The buddy is in memory; cheap passes leave a group alone while it is not.
  bool loaded(GroupNo group) const { return groups_[group.value()].buddy != nullptr; }
  Buddy& buddy(GroupNo group) { return *groups_[group.value()].buddy; }
  std::list<Preallocation>& preallocations(GroupNo group) {
    return groups_[group.value()].preallocations;
  }
  // Free blocks, preallocated ones not among them (bb_free).
  std::uint32_t free(GroupNo group);

  // Makes the buddy (ext4_mb_load_buddy), with blocks smaller than half a page also that of the
  // group that shares its page. Errors: euclean.
  Task<KResult<void>> load(GroupNo group);
  // Starts reads of the bitmaps of `count` groups from `first` on, wrapping; adds the reads to
  // `ios` and returns the group after the last (ext4_mb_prefetch).
  GroupNo prefetch(GroupNo first, std::uint32_t count, std::uint32_t& ios);
  // Makes the buddies of the `count` groups before `end` (ext4_mb_prefetch_fini).
  Task<> finish_prefetch(GroupNo end, std::uint32_t count);

  void mark_used(GroupNo group, GroupRun run);
  void mark_free(GroupNo group, GroupRun run);

  // Class of an average fragment or a request of `len` blocks (mb_avg_fragment_size_order).
  std::uint32_t fragment_class(std::uint32_t len) const noexcept;
  const GroupIndex& by_largest_order() const noexcept { return by_largest_order_; }
  const GroupIndex& by_fragment_size() const noexcept { return by_fragment_size_; }

 private:
  struct Group {
    std::unique_ptr<Buddy> buddy;
    std::list<Preallocation> preallocations;
    bool prefetched = false;
  };
  void reindex(GroupNo group);

  Volume& volume_;
  Bitmaps& bitmaps_;
  std::uint32_t orders_;
  std::vector<Group> groups_;
  GroupIndex by_largest_order_;
  GroupIndex by_fragment_size_;
};

}  // namespace jbdlab::ext4
