#include "sim/ext4/alloc/block_groups.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kNowhere = ~0U;
constexpr std::uint32_t kPageSize = 4096;

}  // namespace

GroupIndex::GroupIndex(std::uint32_t classes, std::uint32_t groups)
    : words_((groups + 63) / 64),
      members_(classes, std::vector<std::uint64_t>(words_)),
      class_of_(groups, kNowhere) {}

void GroupIndex::move(GroupNo group, std::optional<std::uint32_t> to) {
  std::uint32_t& now = class_of_[group.value()];
  const std::uint32_t wanted = to.value_or(kNowhere);
  if (now == wanted) return;
  const std::size_t word = group.value() / 64;
  const std::uint64_t bit = std::uint64_t{1} << (group.value() % 64);
  if (now != kNowhere) members_[now][word] &= ~bit;
  if (wanted != kNowhere) members_[wanted][word] |= bit;
  now = wanted;
}

std::optional<GroupNo> GroupIndex::next(std::uint32_t in_class, std::uint32_t from,
                                        std::uint32_t end) const noexcept {
  if (from >= end) return std::nullopt;
  const std::vector<std::uint64_t>& words = members_[in_class];
  std::size_t i = from / 64;
  std::uint64_t w = words[i] & (~std::uint64_t{0} << (from % 64));
  while (w == 0) {
    if (++i == words_) return std::nullopt;
    w = words[i];
  }
  const auto found =
      static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(w));
  if (found >= end) return std::nullopt;
  return GroupNo{found};
}

BlockGroups::BlockGroups(Volume& volume, Bitmaps& bitmaps)
    : volume_(volume),
      bitmaps_(bitmaps),
      orders_(volume.geometry().block_bits + 2),
      groups_(volume.geometry().groups),
      by_largest_order_(orders_, volume.geometry().groups),
      by_fragment_size_(orders_, volume.geometry().groups) {}

std::uint32_t BlockGroups::free(GroupNo group) {
  if (loaded(group)) return buddy(group).free();
  if (bitmaps_.block_uninit(group)) return bitmaps_.free_after_init(group);
  return volume_.desc(group).free_blocks();
}

Task<KResult<void>> BlockGroups::load(GroupNo group) {
  const Geometry& g = volume_.geometry();
  // Bitmap and buddy of a group lie side by side in the page cache: a page of 4096 bytes holds
  // those of two groups if blocks have 1024 bytes, and both are made at once.
  const std::uint32_t per_page = std::max(1U, kPageSize / g.block_size / 2);
  const std::uint32_t first = group.value() / per_page * per_page;
  for (std::uint32_t n = first; n < std::min(first + per_page, count()); ++n) {
    const GroupNo each{n};
    if (loaded(each)) continue;
    const KResult<Buffer*> bitmap = co_await bitmaps_.block_bitmap(each);
    if (!bitmap) co_return std::unexpected(bitmap.error());
    if (loaded(each)) continue;  // by somebody else, while we waited
    auto made = std::make_unique<Buddy>(g.block_bits, g.blocks_per_group);
    made->build((*bitmap)->data.bytes());
    if (made->free() != free(each)) co_return std::unexpected(Errno::euclean);
    groups_[n].buddy = std::move(made);
    reindex(each);
  }
  co_return KResult<void>{};
}

GroupNo BlockGroups::prefetch(GroupNo first, std::uint32_t count, std::uint32_t& ios) {
  std::uint32_t n = first.value();
  for (; count > 0; --count) {
    const GroupNo group{n};
    Group& info = groups_[n];
    if (!std::exchange(info.prefetched, true) && !loaded(group) &&
        volume_.desc(group).free_blocks() > 0 && bitmaps_.prefetch_block_bitmap(group)) {
      ++ios;
    }
    if (++n >= this->count()) n = 0;
  }
  return GroupNo{n};
}

Task<> BlockGroups::finish_prefetch(GroupNo end, std::uint32_t count) {
  std::uint32_t n = end.value();
  for (; count > 0; --count) {
    if (n == 0) n = this->count();
    --n;
    const GroupNo group{n};
    if (loaded(group) || volume_.desc(group).free_blocks() == 0) continue;
    const KResult<void> ok = co_await load(group);
    if (!ok) co_return;  // who needs the group will see the error
  }
}

void BlockGroups::mark_used(GroupNo group, GroupRun run) {
  buddy(group).mark_used(run.start, run.len);
  reindex(group);
}

void BlockGroups::mark_free(GroupNo group, GroupRun run) {
  buddy(group).mark_free(run.start, run.len);
  reindex(group);
}

std::uint32_t BlockGroups::fragment_class(std::uint32_t len) const noexcept {
  const auto width = static_cast<std::uint32_t>(std::bit_width(len));
  return width < 2 ? 0 : std::min(width - 2, orders_ - 1);
}

void BlockGroups::reindex(GroupNo group) {
  const Buddy& b = buddy(group);
  by_largest_order_.move(group, b.largest_order());
  by_fragment_size_.move(group, b.fragments() == 0
                                    ? std::nullopt
                                    : std::optional{fragment_class(b.free() / b.fragments())});
}

}  // namespace jbdlab::ext4
