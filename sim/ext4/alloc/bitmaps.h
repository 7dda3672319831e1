#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/ids.h"
#include "sim/ext4/types.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// Bits of a bitmap block: bit i of byte i / 8, lowest first.
bool test_bit(ByteSpan bitmap, std::uint32_t bit) noexcept;
void set_bits(MutableByteSpan bitmap, std::uint32_t first, std::uint32_t count) noexcept;
void clear_bits(MutableByteSpan bitmap, std::uint32_t first, std::uint32_t count) noexcept;
// First clear (set) bit of [from, end); `end` if there is none.
std::uint32_t next_clear_bit(ByteSpan bitmap, std::uint32_t from, std::uint32_t end) noexcept;
std::uint32_t next_set_bit(ByteSpan bitmap, std::uint32_t from, std::uint32_t end) noexcept;

// The block and inode bitmaps of all groups, each checked when it is first read, or made in memory
// where its group says that it was never initialised.
// Source: ext4_read_block_bitmap_nowait, ext4_validate_block_bitmap, ext4_init_block_bitmap of
// fs/ext4/balloc.c; ext4_read_inode_bitmap of fs/ext4/ialloc.c.
class Bitmaps {
 public:
  explicit Bitmaps(Volume& volume) noexcept : volume_(volume) {}

  // Errors: euclean (checksum, or metadata of the group is marked free).
  Task<KResult<Buffer*>> block_bitmap(GroupNo group);
  Task<KResult<Buffer*>> inode_bitmap(GroupNo group);
  // Starts to read a block bitmap, or makes it; true if it has yet to come from the device.
  bool prefetch_block_bitmap(GroupNo group);
  // The block bitmap of a group whose bitmap block_bitmap() has returned before.
  Buffer& ready_block_bitmap(GroupNo group);

  // Free blocks of a group in which nothing but its metadata is in use.
  std::uint32_t free_after_init(GroupNo group);
  bool block_uninit(GroupNo group) { return flagged(group, GroupDesc::kBlockUninit); }
  bool inode_uninit(GroupNo group) { return flagged(group, GroupDesc::kInodeUninit); }

 private:
  // Calls use(first, count) for every run of `group` that holds metadata of any group of its flex
  // group, as offsets in the group.
  template <class Use>
  void for_metadata(GroupNo group, GroupNo owner, Use use);
  bool flagged(GroupNo group, std::uint16_t flag) {
    return volume_.geometry().desc_csum() && (volume_.desc(group).flags() & flag) != 0;
  }
  void make_block_bitmap(GroupNo group, Buffer& buffer);
  bool block_bitmap_sound(GroupNo group, const Buffer& buffer);

  Volume& volume_;
};

}  // namespace jbdlab::ext4
