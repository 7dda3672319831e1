#include "sim/ext4/dir/htree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kBlockMask = 0x0fff'ffff;  // the upper bits of a target are reserved
constexpr std::size_t kVersionAt = 28, kInfoLengthAt = 29, kLevelsAt = 30, kFlagsAt = 31;
constexpr std::uint8_t kInfoLength = 8;

// One entry of a leaf in the order of hashes (struct dx_map_entry).
struct Mapped {
  std::uint32_t hash;
  std::uint32_t offset;
  std::uint32_t rec_len;
};

// All used entries, the last one of the block first; nothing if the chain is broken.
std::optional<std::vector<Mapped>> map_entries(const DirFormat& format, const DirHasher& hasher,
                                               ByteSpan leaf) {
  std::vector<Mapped> map;
  map.reserve(format.block_size / kDirEntryMin);
  const std::uint32_t end = format.entries_end();
  std::array<char, kNameMax> name;
  for (std::uint32_t offset = 0; offset < end;) {
    const Result<DirEntry> entry = check_dir_entry(format, leaf, offset, end);
    if (!entry) return std::nullopt;
    if (entry->used() && entry->name_len > 0) {
      std::memcpy(name.data(), leaf.data() + offset + kDirEntryHeader, entry->name_len);
      map.push_back({.hash = hasher({name.data(), entry->name_len}).major,
                     .offset = offset,
                     .rec_len = entry->rec_len});
    }
    offset += entry->rec_len;
  }
  std::ranges::reverse(map);
  return map;
}

// By hash. Among equal hashes the order is an accident of the kernel's comb sort (dx_sort_map), and
// decides the bytes of the new leaf; so this is a comb sort with the same gaps.
void sort_by_hash(std::vector<Mapped>& map) {
  const auto comb = [&map](std::size_t gap) {
    bool swapped = false;
    for (std::size_t i = map.size(); i-- > gap;) {
      if (map[i].hash < map[i - gap].hash) {
        std::swap(map[i], map[i - gap]);
        swapped = true;
      }
    }
    return swapped;
  };
  for (std::size_t gap = map.size(); gap > 2;) {
    gap = gap * 10 / 13;
    if (gap == 9 || gap == 10) gap = 11;
    comb(gap);
  }
  while (comb(1)) {
  }
}

// The kernel builds its map at the end of the new leaf. What the moved entries do not cover stays
// there, in the free room, and so on the disk.
void leave_map_behind(const std::vector<Mapped>& map, MutableByteSpan fresh) {
  std::size_t at = fresh.size() - map.size() * 8;
  for (const Mapped& entry : map) {
    set_le(fresh, at, entry.hash);
    set_le(fresh, at + 4, static_cast<std::uint16_t>(entry.offset / 4));
    set_le(fresh, at + 6, static_cast<std::uint16_t>(entry.rec_len));
    at += 8;
  }
}

// Copies the entries of `moved`, in this order, to the beginning of `to`, and marks them unused in
// `from`. Returns the offset of the last one.
std::uint32_t move_entries(std::span<const Mapped> moved, MutableByteSpan from,
                           MutableByteSpan to) {
  std::uint32_t at = 0, last = 0;
  for (const Mapped& entry : moved) {
    const std::uint32_t size = dir_entry_size(dir_entry_at(from, entry.offset).name_len);
    std::ranges::copy(from.subspan(entry.offset, size), to.subspan(at, size).begin());
    set_rec_len(to, at, size);
    std::ranges::fill(from.subspan(entry.offset, entry.rec_len), std::byte{0});
    set_rec_len(from, entry.offset, entry.rec_len);
    last = at;
    at += size;
  }
  return last;
}

// Moves the used entries of a checked leaf together, each as long as its name needs. Returns the
// offset of the last one.
std::uint32_t pack_entries(const DirFormat& format, MutableByteSpan leaf) {
  std::uint32_t to = 0, last = 0;
  const std::uint32_t end = format.entries_end();
  for (std::uint32_t from = 0; from < end;) {
    const DirEntry entry = dir_entry_at(leaf, from);
    if (entry.used() && entry.name_len > 0) {
      const std::uint32_t size = dir_entry_size(entry.name_len);
      if (from > to) std::memmove(leaf.data() + to, leaf.data() + from, size);
      set_rec_len(leaf, to, size);
      last = to;
      to += size;
    }
    from += entry.rec_len;
  }
  return last;
}

// How many of the entries, from the top, move: as many as fit into half a block, counting the free
// room behind them. All fit: half of them move.
std::size_t first_to_move(const std::vector<Mapped>& map, std::uint32_t block_size) {
  std::uint32_t moved_size = 0;
  for (std::size_t i = map.size(); i-- > 0;) {
    if (moved_size + map[i].rec_len / 2 > block_size / 2) return i + 1;
    moved_size += map[i].rec_len;
  }
  return map.size() / 2;
}

}  // namespace

bool IndexTable::valid(ByteSpan block) const {
  const std::uint32_t n = count(block);
  return get_le<std::uint16_t>(block, at_) == limit_ && n >= 1 && n <= limit_;
}
std::uint32_t IndexTable::count(ByteSpan block) const {
  return get_le<std::uint16_t>(block, at_ + 2);
}
std::uint32_t IndexTable::hash(ByteSpan block, std::uint32_t index) const {
  return get_le<std::uint32_t>(block, entry_at(index));
}
LogicalBlock IndexTable::target(ByteSpan block, std::uint32_t index) const {
  return LogicalBlock{get_le<std::uint32_t>(block, entry_at(index) + 4) & kBlockMask};
}

std::uint32_t IndexTable::find(ByteSpan block, std::uint32_t hash) const {
  std::uint32_t first = 1, end = count(block);
  while (first < end) {
    const std::uint32_t middle = first + (end - first) / 2;
    if (this->hash(block, middle) > hash) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first - 1;
}

void IndexTable::set_limit(MutableByteSpan block) const {
  set_le(block, at_, static_cast<std::uint16_t>(limit_));
}
void IndexTable::set_count(MutableByteSpan block, std::uint32_t count) const {
  set_le(block, at_ + 2, static_cast<std::uint16_t>(count));
}
void IndexTable::set_target(MutableByteSpan block, std::uint32_t index, LogicalBlock target) const {
  set_le(block, entry_at(index) + 4, target.value());
}

void IndexTable::insert_after(MutableByteSpan block, std::uint32_t index, std::uint32_t hash,
                              LogicalBlock target) const {
  const std::uint32_t n = count(block);
  CHECK(index < n);
  CHECK(n < limit_);
  const std::size_t at = entry_at(index + 1);
  std::memmove(block.data() + at + 8, block.data() + at, entry_at(n) - at);
  set_le(block, at, hash);
  set_target(block, index + 1, target);
  set_count(block, n + 1);
}

void IndexTable::copy_to(ByteSpan block, std::uint32_t first, std::uint32_t count,
                         const IndexTable& other, MutableByteSpan other_block) const {
  CHECK(first + count <= limit_);
  CHECK(count <= other.limit_);
  std::ranges::copy(block.subspan(entry_at(first), std::size_t{8} * count),
                    other_block.subspan(other.at_).begin());
  other.set_limit(other_block);
  other.set_count(other_block, count);
}

std::uint32_t IndexTable::checksum(ByteSpan block, std::uint32_t seed) const {
  constexpr std::array<std::byte, 4> kZero{};
  std::uint32_t sum = crc32c(seed, block.first(entry_at(count(block))));
  sum = crc32c(sum, block.subspan(entry_at(limit_), 4));
  return crc32c(sum, kZero);
}
void IndexTable::update_checksum(MutableByteSpan block, std::uint32_t seed) const {
  if (checksums_) set_le(block, entry_at(limit_) + 4, checksum(block, seed));
}
bool IndexTable::checksum_ok(ByteSpan block, std::uint32_t seed) const {
  return !checksums_ || (valid(block) && get_le<std::uint32_t>(block, entry_at(limit_) + 4) ==
                                             checksum(block, seed));
}

Result<IndexRootInfo> parse_index_root(const DirFormat& format, ByteSpan block) {
  CHECK(block.size() == format.block_size);
  const DirEntry dot = dir_entry_at(block, 0);
  const DirEntry dotdot = dir_entry_at(block, 12);
  if (dot.rec_len != 12 || dotdot.rec_len != format.block_size - 12) {
    return fail(
        Errc::invalid,
        fmt::format("directory index: expected \".\" of 12 bytes and \"..\" of {}, found {} "
                    "and {}",
                    format.block_size - 12, dot.rec_len, dotdot.rec_len));
  }
  const auto version = get_le<std::uint8_t>(block, kVersionAt);
  const auto length = get_le<std::uint8_t>(block, kInfoLengthAt);
  const auto levels = get_le<std::uint8_t>(block, kLevelsAt);
  const auto flags = get_le<std::uint8_t>(block, kFlagsAt);
  if (get_le<std::uint32_t>(block, IndexTable::kRootInfo) != 0 || length != kInfoLength ||
      (flags & 1) != 0) {
    return fail(Errc::invalid,
                fmt::format("directory index: expected a header of 8 bytes without flags, found {} "
                            "bytes and flags {:#x}",
                            length, flags),
                IndexTable::kRootInfo);
  }
  if (version > static_cast<std::uint8_t>(DirHashVersion::tea)) {
    return fail(Errc::unsupported,
                fmt::format("directory index: expected hash 0, 1 or 2, found {}", version),
                kVersionAt);
  }
  return IndexRootInfo{.hash_version = static_cast<DirHashVersion>(version), .levels = levels};
}

void build_index_root_info(const IndexRootInfo& info, MutableByteSpan block) {
  set_le(block, IndexTable::kRootInfo, std::uint32_t{0});
  set_le(block, kVersionAt, static_cast<std::uint8_t>(info.hash_version));
  set_le(block, kInfoLengthAt, kInfoLength);
  set_le(block, kLevelsAt, static_cast<std::uint8_t>(info.levels));
  set_le(block, kFlagsAt, std::uint8_t{0});
}

bool looks_like_index_node(const DirFormat& format, ByteSpan block) {
  const DirEntry entry = dir_entry_at(block, 0);
  return !entry.used() && entry.rec_len == format.block_size;
}

void init_index_node(const DirFormat& format, MutableByteSpan block) {
  std::ranges::fill(block.first(kDirEntryHeader), std::byte{0});
  set_rec_len(block, 0, format.block_size);
}

bool convert_to_index(const DirFormat& format, DirHashVersion version, MutableByteSpan block,
                      MutableByteSpan leaf) {
  const std::uint32_t end = format.entries_end();
  std::uint32_t first = 0;  // entry behind ".."
  for (const std::string_view name : {".", ".."}) {
    const Result<DirEntry> entry = check_dir_entry(format, block, first, end);
    if (!entry || dir_entry_name(block, first) != name) return false;
    first += entry->rec_len;
  }
  std::uint32_t last = first;
  for (std::uint32_t offset = first; offset < end;) {
    const Result<DirEntry> entry = check_dir_entry(format, block, offset, end);
    if (!entry) return false;
    last = offset;
    offset += entry->rec_len;
  }
  if (first >= end || dir_entry_at(block, 0).rec_len != 12) return false;

  const MutableByteSpan moved = block.subspan(first, end - first);
  std::ranges::copy(moved, leaf.begin());
  std::ranges::fill(moved, std::byte{0});
  set_rec_len(leaf, last - first, end - (last - first));
  init_dir_tail(format, leaf);

  set_rec_len(block, 12, format.block_size - 12);
  build_index_root_info({.hash_version = version, .levels = 0}, block);
  const IndexTable table = IndexTable::of_root(format);
  table.set_target(block, 0, LogicalBlock{1});
  table.set_count(block, 1);
  table.set_limit(block);
  return true;
}

std::optional<LeafSplit> split_leaf(const DirFormat& format, const DirHasher& hasher,
                                    MutableByteSpan leaf, MutableByteSpan fresh) {
  CHECK(leaf.size() == format.block_size && fresh.size() == format.block_size);
  std::optional<std::vector<Mapped>> map = map_entries(format, hasher, leaf);
  if (!map) return std::nullopt;
  sort_by_hash(*map);
  const std::size_t split = first_to_move(*map, format.block_size);
  if (split == 0) return std::nullopt;

  leave_map_behind(*map, fresh);
  LeafSplit result{.hash = (*map)[split].hash,
                   .continued = (*map)[split].hash == (*map)[split - 1].hash};
  result.high_last = move_entries(std::span(*map).subspan(split), leaf, fresh);
  result.low_last = pack_entries(format, leaf);
  set_rec_len(leaf, result.low_last, format.entries_end() - result.low_last);
  set_rec_len(fresh, result.high_last, format.entries_end() - result.high_last);
  init_dir_tail(format, leaf);
  init_dir_tail(format, fresh);
  return result;
}

}  // namespace jbdlab::ext4
