#include "sim/ext4/places.h"

#include <algorithm>

namespace jbdlab::ext4 {
namespace {

using sim::SectorClass;
using Range = sim::SectorClassifier::Range;

constexpr std::size_t kReservedGdtBlocks = 0xCE, kBackupGroups = 0x24C;

bool is_power_of(std::uint32_t n, std::uint32_t base) {
  while (n % base == 0) n /= base;
  return n == 1;
}

// True if `group` begins with a copy of the superblock (ext4_bg_has_super).
bool has_super(Volume& volume, std::uint32_t group) {
  const Geometry& geometry = volume.geometry();
  if (group == 0) return true;
  if ((geometry.compat & kCompatSparseSuper2) != 0) {
    return group == get_le<std::uint32_t>(volume.super(), kBackupGroups) ||
           group == get_le<std::uint32_t>(volume.super(), kBackupGroups + 4);
  }
  if (group == 1 || (geometry.ro_compat & kRoCompatSparseSuper) == 0) return true;
  return is_power_of(group, 3) || is_power_of(group, 5) || is_power_of(group, 7);
}

void add(std::vector<Range>& ranges, std::uint64_t first, std::uint64_t count, SectorClass what) {
  if (count > 0) ranges.push_back({FsBlock{first}, FsBlock{first + count}, what});
}

void add_journal(std::vector<Range>& ranges, const JournalPlace& journal,
                 std::uint32_t fast_commit_blocks) {
  const std::uint32_t area = journal.count() - fast_commit_blocks;
  for (const JournalPlace::Run& run : journal.runs()) {
    // The parts of the run that lie in [first, end) of the journal.
    const auto part = [&](std::uint32_t first, std::uint32_t end, SectorClass what) {
      const std::uint32_t from = std::max(run.first, first);
      const std::uint32_t to = std::min(run.first + run.count, end);
      if (from < to) add(ranges, run.physical.value() + (from - run.first), to - from, what);
    };
    part(0, 1, SectorClass::journal_super);
    part(1, area, SectorClass::journal_log);
    part(area, journal.count(), SectorClass::journal_fc);
  }
}

}  // namespace

std::vector<Range> fixed_places(Volume& volume, const JournalPlace& journal,
                                std::uint32_t fast_commit_blocks) {
  const Geometry& geometry = volume.geometry();
  const std::uint32_t table =
      (geometry.groups + geometry.descs_per_block() - 1) / geometry.descs_per_block();
  const std::uint32_t reserved = (geometry.compat & kCompatResizeInode) != 0
                                     ? get_le<std::uint16_t>(volume.super(), kReservedGdtBlocks)
                                     : 0;
  std::vector<Range> ranges;
  for (std::uint32_t group = 0; group < geometry.groups; ++group) {
    const std::uint64_t first = geometry.first_block_of(GroupNo{group}).value();
    if (has_super(volume, group)) {
      add(ranges, first, 1, SectorClass::super);
      add(ranges, first + 1, table + reserved, SectorClass::gdt);
    }
    const GroupDesc desc = volume.desc(GroupNo{group});
    add(ranges, desc.block_bitmap().value(), 1, SectorClass::block_bitmap);
    add(ranges, desc.inode_bitmap().value(), 1, SectorClass::inode_bitmap);
    add(ranges, desc.inode_table().value(), geometry.inode_table_blocks(),
        SectorClass::inode_table);
  }
  add_journal(ranges, journal, fast_commit_blocks);
  return ranges;
}

}  // namespace jbdlab::ext4
