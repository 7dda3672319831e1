#include "sim/ext4/alloc/bitmaps.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace jbdlab::ext4 {
namespace {

std::byte mask(std::uint32_t first, std::uint32_t count) noexcept {
  return static_cast<std::byte>(((1U << count) - 1) << first);
}

template <class Apply>
void for_bytes(MutableByteSpan bitmap, std::uint32_t first, std::uint32_t count, Apply apply) {
  while (count > 0) {
    const std::uint32_t shift = first % 8;
    const std::uint32_t n = std::min(8 - shift, count);
    apply(bitmap[first / 8], mask(shift, n));
    first += n;
    count -= n;
  }
}

// First bit of [from, end) that differs from those of `skip` (all ones or all zeros).
std::uint32_t next_other_bit(ByteSpan bitmap, std::uint32_t from, std::uint32_t end,
                             std::uint64_t skip) noexcept {
  while (from < end) {
    if (from % 64 == 0 && end - from >= 64) {
      const std::uint64_t differs = get_le<std::uint64_t>(bitmap, from / 8) ^ skip;
      if (differs != 0) return from + static_cast<std::uint32_t>(std::countr_zero(differs));
      from += 64;
    } else {
      if (test_bit(bitmap, from) != (skip != 0)) return from;
      ++from;
    }
  }
  return end;
}

}  // namespace

bool test_bit(ByteSpan bitmap, std::uint32_t bit) noexcept {
  return (std::to_integer<unsigned>(bitmap[bit / 8]) >> (bit % 8) & 1) != 0;
}

void set_bits(MutableByteSpan bitmap, std::uint32_t first, std::uint32_t count) noexcept {
  for_bytes(bitmap, first, count, [](std::byte& byte, std::byte bits) { byte |= bits; });
}

void clear_bits(MutableByteSpan bitmap, std::uint32_t first, std::uint32_t count) noexcept {
  for_bytes(bitmap, first, count, [](std::byte& byte, std::byte bits) { byte &= ~bits; });
}

std::uint32_t next_clear_bit(ByteSpan bitmap, std::uint32_t from, std::uint32_t end) noexcept {
  return next_other_bit(bitmap, from, end, ~std::uint64_t{0});
}

std::uint32_t next_set_bit(ByteSpan bitmap, std::uint32_t from, std::uint32_t end) noexcept {
  return next_other_bit(bitmap, from, end, 0);
}

template <class Use>
void Bitmaps::for_metadata(GroupNo group, GroupNo owner, Use use) {
  const Geometry& g = volume_.geometry();
  const std::uint64_t begin = g.first_block_of(group).value();
  const std::uint64_t end = begin + g.blocks_in(group);
  const GroupDesc desc = volume_.desc(owner);
  const auto piece = [&](FsBlock first, std::uint32_t count) {
    const std::uint64_t from = std::max(first.value(), begin);
    const std::uint64_t to = std::min(first.value() + count, end);
    if (from < to) {
      use(static_cast<std::uint32_t>(from - begin), static_cast<std::uint32_t>(to - from));
    }
  };
  piece(desc.block_bitmap(), 1);
  piece(desc.inode_bitmap(), 1);
  piece(desc.inode_table(), g.inode_table_blocks());
}

std::uint32_t Bitmaps::free_after_init(GroupNo group) {
  const Geometry& g = volume_.geometry();
  std::uint32_t used = g.base_meta_blocks(group);
  for_metadata(group, group, [&](std::uint32_t, std::uint32_t count) { used += count; });
  const std::uint32_t size = g.blocks_in(group);
  return used < size ? size - used : 0;
}

void Bitmaps::make_block_bitmap(GroupNo group, Buffer& buffer) {
  const Geometry& g = volume_.geometry();
  buffer.data = BlockRef::zeros(g.block_size);
  const MutableByteSpan bits = buffer.data.mutate();
  const std::uint32_t size = g.blocks_in(group);
  set_bits(bits, 0, std::min(size, g.base_meta_blocks(group)));
  for_metadata(group, group,
               [&](std::uint32_t first, std::uint32_t count) { set_bits(bits, first, count); });
  set_bits(bits, size, 8 * g.block_size - size);
  buffer.uptodate = true;
  buffer.verified = true;
}

// All metadata that lies in the group, its own and that of its flex group, must be in use, and what
// lies behind the end of the last group as well.
bool Bitmaps::block_bitmap_sound(GroupNo group, const Buffer& buffer) {
  const Geometry& g = volume_.geometry();
  const ByteSpan bits = buffer.data.bytes();
  if (!volume_.desc(group).block_bitmap_checksum_ok(bits)) return false;
  const auto used = [&](std::uint32_t first, std::uint32_t count) {
    return next_clear_bit(bits, first, first + count) == first + count;
  };
  const std::uint32_t size = g.blocks_in(group);
  bool sound =
      used(0, std::min(size, g.base_meta_blocks(group))) && used(size, g.blocks_per_group - size);
  const std::uint64_t flex_first =
      group.value() / g.groups_per_flex * std::uint64_t{g.groups_per_flex};
  const std::uint64_t flex_end = std::min<std::uint64_t>(flex_first + g.groups_per_flex, g.groups);
  for (std::uint64_t owner = flex_first; owner < flex_end; ++owner) {
    for_metadata(
        group, GroupNo{static_cast<std::uint32_t>(owner)},
        [&](std::uint32_t first, std::uint32_t count) { sound = sound && used(first, count); });
  }
  return sound;
}

Task<KResult<Buffer*>> Bitmaps::block_bitmap(GroupNo group) {
  const FsBlock where = volume_.desc(group).block_bitmap();
  Buffer& buffer = volume_.buffers().get(where);
  if (buffer.verified) co_return &buffer;
  if (!buffer.uptodate && block_uninit(group)) {
    make_block_bitmap(group, buffer);
    co_return &buffer;
  }
  Buffer* const read = co_await volume_.buffers().read(where);
  if (!read->verified && !block_bitmap_sound(group, *read)) {
    co_return std::unexpected(Errno::euclean);
  }
  read->verified = true;
  co_return read;
}

bool Bitmaps::prefetch_block_bitmap(GroupNo group) {
  const FsBlock where = volume_.desc(group).block_bitmap();
  Buffer& buffer = volume_.buffers().get(where);
  if (buffer.uptodate) return false;
  if (block_uninit(group)) {
    make_block_bitmap(group, buffer);
    return false;
  }
  volume_.buffers().read_ahead(where, 1);
  return !buffer.uptodate;
}

Buffer& Bitmaps::ready_block_bitmap(GroupNo group) {
  Buffer& buffer = volume_.buffers().get(volume_.desc(group).block_bitmap());
  CHECK(buffer.verified);
  return buffer;
}

Task<KResult<Buffer*>> Bitmaps::inode_bitmap(GroupNo group) {
  const Geometry& g = volume_.geometry();
  const FsBlock where = volume_.desc(group).inode_bitmap();
  Buffer& buffer = volume_.buffers().get(where);
  if (buffer.verified) co_return &buffer;
  if (!buffer.uptodate && inode_uninit(group)) {
    buffer.data = BlockRef::zeros(g.block_size);
    set_bits(buffer.data.mutate(), g.inodes_per_group, 8 * g.block_size - g.inodes_per_group);
    buffer.uptodate = true;
    buffer.verified = true;
    co_return &buffer;
  }
  Buffer* const read = co_await volume_.buffers().read(where);
  if (!read->verified && !volume_.desc(group).inode_bitmap_checksum_ok(read->data.bytes())) {
    co_return std::unexpected(Errno::euclean);
  }
  read->verified = true;
  co_return read;
}

}  // namespace jbdlab::ext4
