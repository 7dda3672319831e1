#include "sim/ext4/alloc/inode_allocator.h"

#include <algorithm>

#include "sim/ext4/dir_hash.h"

namespace jbdlab::ext4 {
namespace {

constexpr Ino kRootIno{2};
constexpr GroupNo kNoGroup{0xFFFF'FFFF};

}  // namespace

// ----- the choice of a group -----

InodeAllocator::Averages InodeAllocator::averages() const {
  const std::uint32_t flex_groups = volume_.geometry().flex_groups();
  const std::uint64_t inodes = volume_.free_inodes.read();
  return {.free_inodes_total = inodes,
          .free_inodes = inodes / flex_groups,
          .free_blocks = volume_.free_blocks.read() / flex_groups,
          .used_dirs = volume_.directories.read() / flex_groups};
}

InodeAllocator::Stats InodeAllocator::stats(std::uint32_t flex_group) {
  const Geometry& g = volume_.geometry();
  const std::uint64_t first = std::uint64_t{flex_group} * g.groups_per_flex;
  const std::uint64_t end = std::min<std::uint64_t>(first + g.groups_per_flex, g.groups);
  Stats sum;
  for (std::uint64_t n = first; n < end; ++n) {
    const GroupDesc desc = volume_.desc(GroupNo{static_cast<std::uint32_t>(n)});
    sum.free_inodes += desc.free_inodes();
    sum.free_blocks += desc.free_blocks();
    sum.used_dirs += desc.used_dirs();
  }
  return sum;
}

std::optional<GroupNo> InodeAllocator::first_with_free_inode(std::uint32_t flex_group) {
  const Geometry& g = volume_.geometry();
  const std::uint64_t first = std::uint64_t{flex_group} * g.groups_per_flex;
  const std::uint64_t end = std::min<std::uint64_t>(first + g.groups_per_flex, g.groups);
  for (std::uint64_t n = first; n < end; ++n) {
    const auto group = static_cast<std::uint32_t>(n);
    if (has_free_inode(group)) return GroupNo{group};
  }
  return std::nullopt;
}

std::optional<GroupNo> InodeAllocator::choose_group(const Inode& directory, bool is_directory,
                                                    std::string_view name) {
  if (!is_directory) return near_directory(directory);
  const Averages average = averages();
  if (directory.ino != kRootIno && (directory.flags & kInodeTopDir) == 0) {
    return orlov(directory, average);
  }
  if (const std::optional<std::uint32_t> flex_group = spread(name, average)) {
    if (volume_.geometry().groups_per_flex == 1) return GroupNo{*flex_group};
    if (const auto group = first_with_free_inode(*flex_group)) return group;
  }
  return any_above_average(directory, average);
}

// Anything but a directory: the flex group of the directory, then where its last child went that
// found no room there (find_group_other).
std::optional<GroupNo> InodeAllocator::near_directory(const Inode& directory) {
  const std::uint32_t per_flex = volume_.geometry().groups_per_flex;
  if (per_flex == 1) return near_directory_without_flex(directory);
  if (const auto group = first_with_free_inode(directory.group.value() / per_flex)) return group;
  if (directory.last_alloc_group != kNoGroup) {
    const auto group = first_with_free_inode(directory.last_alloc_group.value() / per_flex);
    if (group) return group;
  }
  return orlov(directory, averages());
}

// The group of the directory; else by a quadratic hash that the directory's number starts, so that
// its files stay together and apart from those of other directories; else the next with an inode.
std::optional<GroupNo> InodeAllocator::near_directory_without_flex(const Inode& directory) {
  const std::uint32_t groups = volume_.geometry().groups;
  const std::uint32_t own = directory.group.value();
  const auto has_room = [&](std::uint32_t group) {
    return has_free_inode(group) && volume_.desc(GroupNo{group}).free_blocks() > 0;
  };
  if (has_room(own)) return GroupNo{own};
  std::uint64_t group = (std::uint64_t{own} + directory.ino.value()) % groups;
  for (std::uint64_t step = 1; step < groups; step *= 2) {
    group += step;
    if (group >= groups) group -= groups;
    if (has_room(static_cast<std::uint32_t>(group))) {
      return GroupNo{static_cast<std::uint32_t>(group)};
    }
  }
  for (std::uint32_t i = 1; i <= groups; ++i) {
    const auto next = static_cast<std::uint32_t>((std::uint64_t{own} + i) % groups);
    if (has_free_inode(next)) return GroupNo{next};
  }
  return std::nullopt;
}

// A directory of the root: of the flex groups with at least average free inodes and blocks the one
// with the fewest directories, the first from a place on that the name decides.
std::optional<std::uint32_t> InodeAllocator::spread(std::string_view name,
                                                    const Averages& average) {
  const Geometry& g = volume_.geometry();
  const std::uint32_t start =
      dir_hash(DirHashVersion::half_md4, false, g.hash_seed, name).major % g.flex_groups();
  std::optional<std::uint32_t> best;
  std::uint64_t fewest = g.inodes_per_group;
  for (std::uint32_t i = 0; i < g.flex_groups(); ++i) {
    const auto n = static_cast<std::uint32_t>((std::uint64_t{start} + i) % g.flex_groups());
    const Stats have = stats(n);
    if (have.free_inodes == 0 || have.used_dirs >= fewest ||
        have.free_inodes < average.free_inodes || have.free_blocks < average.free_blocks) {
      continue;
    }
    best = n;
    fewest = have.used_dirs;
  }
  return best;
}

// Other directories: the flex group of the last child or of the parent, unless it is far worse than
// the average; else the next that is not.
std::optional<GroupNo> InodeAllocator::orlov(const Inode& directory, const Averages& average) {
  const Geometry& g = volume_.geometry();
  const std::uint64_t flex = g.groups_per_flex;
  const auto less = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  const std::uint64_t max_dirs = average.used_dirs + g.inodes_per_group * flex / 16;
  const std::uint64_t min_inodes =
      std::max<std::uint64_t>(1, less(average.free_inodes, g.inodes_per_group * flex / 4));
  const std::uint64_t min_blocks = less(average.free_blocks, g.blocks_per_group * flex / 4);
  const GroupNo near =
      directory.last_alloc_group != kNoGroup ? directory.last_alloc_group : directory.group;
  const auto start = static_cast<std::uint32_t>(near.value() / flex);
  for (std::uint32_t i = 0; i < g.flex_groups(); ++i) {
    const auto n = static_cast<std::uint32_t>((std::uint64_t{start} + i) % g.flex_groups());
    const Stats have = stats(n);
    if (have.used_dirs >= max_dirs || have.free_inodes < min_inodes ||
        have.free_blocks < min_blocks) {
      continue;
    }
    if (flex == 1) return GroupNo{n};
    if (const auto group = first_with_free_inode(n)) return group;
    break;
  }
  return any_above_average(directory, average);
}

// Nothing was good enough: the first group from the parent's on with at least the average of free
// inodes; since that number lags, then any with one.
std::optional<GroupNo> InodeAllocator::any_above_average(const Inode& directory,
                                                         const Averages& average) {
  const std::uint32_t groups = volume_.geometry().groups;
  for (const std::uint64_t least : {average.free_inodes_total / groups, std::uint64_t{0}}) {
    for (std::uint32_t i = 0; i < groups; ++i) {
      const auto n =
          static_cast<std::uint32_t>((std::uint64_t{directory.group.value()} + i) % groups);
      const std::uint32_t free = volume_.desc(GroupNo{n}).free_inodes();
      if (free > 0 && free >= least) return GroupNo{n};
    }
  }
  return std::nullopt;
}

// ----- taking the number -----

Task<KResult<Ino>> InodeAllocator::allocate(Thread& thread, Inode& directory, std::uint16_t mode,
                                            std::string_view name) {
  const Geometry& g = volume_.geometry();
  const bool is_directory = (mode & kModeTypeMask) == kModeDirectory;
  const std::optional<GroupNo> chosen = choose_group(directory, is_directory, name);
  if (!chosen) co_return std::unexpected(Errno::enospc);
  directory.last_alloc_group = *chosen;
  GroupNo group = *chosen;
  for (std::uint32_t tried = 0; tried < g.groups; ++tried) {
    if (has_free_inode(group.value())) {
      const KResult<Buffer*> read = co_await bitmaps_.inode_bitmap(group);
      if (!read) co_return std::unexpected(read.error());
      Buffer& bitmap = **read;
      // Another thread may take the last one while we wait for access.
      if (next_clear_bit(bitmap.data.bytes(), 0, g.inodes_per_group) < g.inodes_per_group) {
        co_await journal_.get_write_access(thread, bitmap);
        const std::uint32_t bit = next_clear_bit(bitmap.data.bytes(), 0, g.inodes_per_group);
        if (bit < g.inodes_per_group) {
          if (group.value() == 0 && bit + 1 < g.first_inode) {
            co_return std::unexpected(Errno::euclean);  // a reserved inode is marked free
          }
          set_bits(bitmap.data.mutate(), bit, 1);
          journal_.dirty_metadata(thread, bitmap);
          Buffer& table = volume_.desc(group).buffer();
          co_await journal_.get_write_access(thread, table);
          if (bitmaps_.block_uninit(group)) co_await init_block_bitmap(thread, group);
          count(group, bit, is_directory, bitmap.data.bytes());
          journal_.dirty_metadata(thread, table);
          volume_.free_inodes.add(thread.cpu, -1);
          if (is_directory) volume_.directories.add(thread.cpu, 1);
          co_return Ino{group.value() * g.inodes_per_group + bit + 1};
        }
      }
    }
    group = GroupNo{group.value() + 1 == g.groups ? 0 : group.value() + 1};
  }
  co_return std::unexpected(Errno::enospc);
}

Task<KResult<void>> InodeAllocator::release(Thread& thread, const Inode& inode) {
  const std::uint32_t bit = (inode.ino.value() - 1) % volume_.geometry().inodes_per_group;
  const KResult<Buffer*> read = co_await bitmaps_.inode_bitmap(inode.group);
  if (!read) co_return std::unexpected(read.error());
  Buffer& bitmap = **read;
  Buffer& table = volume_.desc(inode.group).buffer();
  co_await journal_.get_write_access(thread, bitmap);
  co_await journal_.get_write_access(thread, table);
  if (!test_bit(bitmap.data.bytes(), bit)) co_return std::unexpected(Errno::euclean);
  clear_bits(bitmap.data.mutate(), bit, 1);
  GroupDesc desc = volume_.desc(inode.group);
  desc.set_free_inodes(desc.free_inodes() + 1);
  if (inode.is_directory()) desc.set_used_dirs(desc.used_dirs() - 1);
  desc.set_inode_bitmap_checksum(bitmap.data.bytes());
  desc.update_checksum();
  volume_.free_inodes.add(thread.cpu, 1);
  if (inode.is_directory()) volume_.directories.add(thread.cpu, -1);
  journal_.dirty_metadata(thread, table);
  journal_.dirty_metadata(thread, bitmap);
  co_return KResult<void>{};
}

// The group gets its first inode: from now on its block bitmap is one that the disk holds.
Task<> InodeAllocator::init_block_bitmap(Thread& thread, GroupNo group) {
  const KResult<Buffer*> made = co_await bitmaps_.block_bitmap(group);
  if (!made) co_return;  // damaged: the block allocator will not use the group either
  Buffer& bitmap = **made;
  co_await journal_.get_write_access(thread, bitmap);
  journal_.dirty_metadata(thread, bitmap);
  GroupDesc desc = volume_.desc(group);
  if (!bitmaps_.block_uninit(group)) co_return;  // somebody else, while we waited
  desc.set_flags(static_cast<std::uint16_t>(desc.flags() & ~GroupDesc::kBlockUninit));
  desc.set_free_blocks(bitmaps_.free_after_init(group));
  desc.set_block_bitmap_checksum(bitmap.data.bytes());
}

void InodeAllocator::count(GroupNo group, std::uint32_t bit, bool is_directory, ByteSpan bitmap) {
  const Geometry& g = volume_.geometry();
  GroupDesc desc = volume_.desc(group);
  if (g.desc_csum()) {
    // The end of the table that was never used gets shorter.
    std::uint32_t used = g.inodes_per_group - desc.itable_unused();
    if (bitmaps_.inode_uninit(group)) {
      desc.set_flags(static_cast<std::uint16_t>(desc.flags() & ~GroupDesc::kInodeUninit));
      used = 0;
    }
    if (bit + 1 > used) desc.set_itable_unused(g.inodes_per_group - (bit + 1));
  }
  desc.set_free_inodes(desc.free_inodes() - 1);
  if (is_directory) desc.set_used_dirs(desc.used_dirs() + 1);
  desc.set_inode_bitmap_checksum(bitmap);
  desc.update_checksum();
}

}  // namespace jbdlab::ext4
