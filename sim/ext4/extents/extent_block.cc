#include "sim/ext4/extents/extent_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"

namespace jbdlab::ext4 {
namespace {

// The lengths above 32768 are those of unwritten extents, minus 32768.
constexpr std::uint32_t kUnwrittenBias = kMaxWrittenLen;

std::uint16_t encoded_len(const Extent& extent) {
  CHECK(extent.len > 0 && extent.len <= (extent.unwritten ? kMaxUnwrittenLen : kMaxWrittenLen));
  return static_cast<std::uint16_t>(extent.len + (extent.unwritten ? kUnwrittenBias : 0));
}

bool inside(const NodeRules& rules, FsBlock first, std::uint32_t len) noexcept {
  return first > rules.first_block && first < rules.end_block &&
         len <= rules.end_block.value() - first.value();
}

}  // namespace

bool can_merge(const Extent& left, const Extent& right) noexcept {
  if (left.unwritten != right.unwritten || left.end() != right.first.value()) return false;
  if (left.len + right.len > (left.unwritten ? kMaxUnwrittenLen : kMaxWrittenLen)) return false;
  return left.physical.value() + left.len == right.physical.value();
}

Result<ExtentNode> ExtentNode::parse(ByteSpan bytes, const NodeRules& rules) {
  CHECK(bytes.size() >= at(rules.capacity));
  const ExtentNode node(bytes);
  if (node.magic() != kExtentMagic) {
    return fail(Errc::bad_magic, fmt::format("extent node: magic is {:#06x}, expected {:#06x}",
                                             node.magic(), kExtentMagic));
  }
  if (node.depth() != rules.depth) {
    return fail(Errc::invalid,
                fmt::format("extent node: depth is {}, expected {}", node.depth(), rules.depth), 6);
  }
  if (node.max() == 0 || node.max() > rules.capacity) {
    return fail(Errc::invalid,
                fmt::format("extent node: room for {} entries, expected 1 to {}", node.max(),
                            rules.capacity),
                4);
  }
  if (node.entries() > node.max() || (node.entries() == 0 && rules.depth > 0)) {
    return fail(Errc::invalid,
                fmt::format("extent node: {} entries where {} to {} are possible", node.entries(),
                            rules.depth > 0 ? 1 : 0, node.max()),
                2);
  }
  return node;
}

Result<void> ExtentNode::check_entries(const NodeRules& rules) const {
  std::uint64_t free_from = 0;  // no entry may begin before this block of the file
  for (std::uint32_t slot = 0; slot < entries(); ++slot) {
    const bool leaf = depth() == 0;
    const Extent here = leaf ? extent(slot) : Extent{index(slot).first, 1, index(slot).child};
    if (here.len == 0 || here.end() > std::uint64_t{1} << 32) {
      return fail(Errc::invalid,
                  fmt::format("extent {}: length {} at block {} of the file", slot, here.len,
                              here.first.value()),
                  at(slot));
    }
    if (!inside(rules, here.physical, here.len)) {
      return fail(Errc::invalid,
                  fmt::format("entry {}: {} blocks from {} are not inside of the file system's {}",
                              slot, here.len, here.physical.value(), rules.end_block.value()),
                  at(slot));
    }
    if (here.first.value() < free_from) {
      return fail(Errc::invalid,
                  fmt::format("entry {}: begins at block {} of the file, expected {} "
                              "or later",
                              slot, here.first.value(), free_from),
                  at(slot));
    }
    free_from = here.end();
  }
  return {};
}

Extent ExtentNode::extent(std::uint32_t slot) const {
  const std::uint16_t len = get_le<std::uint16_t>(raw_, at(slot) + 4);
  const bool unwritten = len > kUnwrittenBias;
  return {first_of(slot), unwritten ? len - kUnwrittenBias : len,
          FsBlock{std::uint64_t{get_le<std::uint16_t>(raw_, at(slot) + 6)} << 32 |
                  get_le<std::uint32_t>(raw_, at(slot) + 8)},
          unwritten};
}

ExtentIndex ExtentNode::index(std::uint32_t slot) const {
  return {first_of(slot), FsBlock{std::uint64_t{get_le<std::uint16_t>(raw_, at(slot) + 8)} << 32 |
                                  get_le<std::uint32_t>(raw_, at(slot) + 4)}};
}

std::uint32_t ExtentNode::search(LogicalBlock block) const {
  CHECK(entries() > 0);
  std::uint32_t low = 1, high = entries();  // the answer is in [low - 1, high)
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (block < first_of(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low - 1;
}

std::uint32_t ExtentNode::checksum(std::uint32_t seed) const {
  return crc32c(seed, raw_.first(tail_offset()));
}

ExtentNodeEditor ExtentNodeEditor::build(MutableByteSpan bytes, std::uint32_t max,
                                         std::uint32_t depth) {
  ExtentNodeEditor node(bytes);
  node.set_half(0, kExtentMagic);
  node.set_entries(0);
  node.set_max(max);
  node.set_depth(depth);
  set_le<std::uint32_t>(bytes, 8, 0);  // generation
  return node;
}

void ExtentNodeEditor::put(std::uint32_t slot, const Extent& extent) {
  set_first(slot, extent.first);
  set_le<std::uint16_t>(raw_, at(slot) + 4, encoded_len(extent));
  set_le<std::uint16_t>(raw_, at(slot) + 6,
                        static_cast<std::uint16_t>(extent.physical.value() >> 32));
  set_le<std::uint32_t>(raw_, at(slot) + 8, static_cast<std::uint32_t>(extent.physical.value()));
}

void ExtentNodeEditor::put(std::uint32_t slot, const ExtentIndex& index) {
  set_first(slot, index.first);
  set_child(slot, index.child);
  set_le<std::uint16_t>(raw_, at(slot) + 10, 0);
}

void ExtentNodeEditor::set_child(std::uint32_t slot, FsBlock child) {
  set_le<std::uint32_t>(raw_, at(slot) + 4, static_cast<std::uint32_t>(child.value()));
  set_le<std::uint16_t>(raw_, at(slot) + 8, static_cast<std::uint16_t>(child.value() >> 32));
}

void ExtentNodeEditor::open_gap(std::uint32_t slot) {
  const std::uint32_t n = view().entries();
  CHECK(slot <= n && n < view().max());
  std::memmove(raw_.data() + at(slot + 1), raw_.data() + at(slot), (n - slot) * kExtentEntrySize);
  set_entries(n + 1);
}

void ExtentNodeEditor::remove(std::uint32_t slot) {
  const std::uint32_t n = view().entries();
  CHECK(slot < n);
  std::memmove(raw_.data() + at(slot), raw_.data() + at(slot + 1),
               (n - slot - 1) * kExtentEntrySize);
  set_entries(n - 1);
}

void ExtentNodeEditor::append_from(const ExtentNode& from, ByteSpan from_bytes,
                                   std::uint32_t slot) {
  const std::uint32_t n = view().entries(), count = from.entries() - slot;
  CHECK(slot <= from.entries() && n + count <= view().max());
  std::ranges::copy(from_bytes.subspan(at(slot), count * kExtentEntrySize),
                    raw_.begin() + static_cast<std::ptrdiff_t>(at(n)));
  set_entries(n + count);
}

void ExtentNodeEditor::update_checksum(std::uint32_t seed) {
  set_le<std::uint32_t>(raw_, view().tail_offset(), view().checksum(seed));
}

}  // namespace jbdlab::ext4
