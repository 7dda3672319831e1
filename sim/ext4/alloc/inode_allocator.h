#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.h"
#include "sim/ext4/alloc/bitmaps.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/journal.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// i_flags of a directory: its children are spread as those of the root are (chattr +T).
inline constexpr std::uint32_t kInodeTopDir = 0x20000;

// Chooses inode numbers: files near their directory, directories of the root spread over the flex
// groups, others near their parent (Orlov). Keeps the inode bitmaps and what counts them.
// Source: __ext4_new_inode, find_group_orlov, find_group_other of fs/ext4/ialloc.c, Linux 6.18.
class InodeAllocator {
 public:
  // All references outlive the allocator; the volume is loaded.
  InodeAllocator(Volume& volume, Bitmaps& bitmaps, MetadataJournal& journal) noexcept
      : volume_(volume), bitmaps_(bitmaps), journal_(journal) {}

  // A number for a new inode of type and permissions `mode` with the entry `name` in `directory`,
  // marked in use in the open handle of `thread`. Dirties the inode bitmap, the block bitmap of a
  // group whose blocks were not initialised, and the descriptor, in this order; remembers in
  // directory.last_alloc_group where it went. Errors: enospc, euclean.
  Task<KResult<Ino>> allocate(Thread& thread, Inode& directory, std::uint16_t mode,
                              std::string_view name);

  // Takes back the number of an inode that nothing refers to any more, in the open handle of
  // `thread`. Dirties the descriptor and the inode bitmap, in this order (ext4_free_inode). Errors:
  // euclean.
  Task<KResult<void>> release(Thread& thread, const Inode& inode);

 private:
  // What is known of a flex group, or of a group where there are none.
  struct Stats {
    std::uint64_t free_inodes = 0;
    std::uint64_t free_blocks = 0;
    std::uint64_t used_dirs = 0;
  };
  // The lagging counters, and what they mean for a flex group.
  struct Averages {
    std::uint64_t free_inodes_total = 0;
    std::uint64_t free_inodes = 0;
    std::uint64_t free_blocks = 0;
    std::uint64_t used_dirs = 0;
  };

  std::optional<GroupNo> choose_group(const Inode& directory, bool is_directory,
                                      std::string_view name);
  std::optional<GroupNo> near_directory(const Inode& directory);
  std::optional<GroupNo> near_directory_without_flex(const Inode& directory);
  std::optional<GroupNo> orlov(const Inode& directory, const Averages& averages);
  std::optional<std::uint32_t> spread(std::string_view name, const Averages& averages);
  std::optional<GroupNo> any_above_average(const Inode& directory, const Averages& averages);
  std::optional<GroupNo> first_with_free_inode(std::uint32_t flex_group);
  Averages averages() const;
  Stats stats(std::uint32_t flex_group);
  bool has_free_inode(std::uint32_t group) {
    return volume_.desc(GroupNo{group}).free_inodes() > 0;
  }

  Task<> init_block_bitmap(Thread& thread, GroupNo group);
  void count(GroupNo group, std::uint32_t bit, bool is_directory, ByteSpan bitmap);

  Volume& volume_;
  Bitmaps& bitmaps_;
  MetadataJournal& journal_;
};

}  // namespace jbdlab::ext4
