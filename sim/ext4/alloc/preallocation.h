#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "base/ids.h"
#include "sim/engine/sync.h"
#include "sim/ext4/inode.h"

namespace jbdlab::ext4 {

// Blocks that are set aside in memory: used for the allocator, free on the disk. They die with the
// mount. Source: struct ext4_prealloc_space, fs/ext4/mballoc.h.
//
//   of an inode      stands for a stretch of the file, block for block; what of it is still free is
//                    known from the bitmap
//   of a locality    used up from its start by small files, whatever they are; `physical` and `len`
//   group            are what is left of it
struct Preallocation {
  enum class Kind : std::uint8_t { inode, locality_group };

  Kind kind = Kind::inode;
  GroupNo group;
  FsBlock physical;
  LogicalBlock logical;  // of an inode: where in the file
  std::uint32_t len = 0;
  std::uint32_t free = 0;
  std::uint32_t users = 0;  // allocations under way that take from it (pa_count)
  Inode* inode = nullptr;
  unsigned cpu = 0;                           // of a locality group: whose
  std::list<Preallocation>::iterator self{};  // in its group's list, which owns it

  std::uint64_t logical_end() const noexcept { return std::uint64_t{logical.value()} + len; }
};

// The preallocations of one file, by their first logical block (i_prealloc_node). They do not
// overlap.
class InodePreallocations {
 public:
  std::map<std::uint32_t, Preallocation*> by_start;
};

// What one CPU has set aside for small files, in lists by how much is left (2^k to 2^(k+1) - 1
// blocks), each with the smaller ones first (struct ext4_locality_group).
struct LocalityGroup {
  static constexpr std::size_t kLists = 10;  // PREALLOC_TB_SIZE

  explicit LocalityGroup(sim::Engine& engine) noexcept : lock(engine) {}
  sim::Mutex lock;  // held for the whole of an allocation (lg_mutex)
  std::array<std::vector<Preallocation*>, kLists> lists;
};

}  // namespace jbdlab::ext4
