#include <algorithm>
#include <array>
#include <iterator>

#include "base/check.h"
#include "sim/ext4/alloc/allocation_context.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint32_t kSmallFile = 16;        // blocks: s_mb_stream_request
constexpr std::uint32_t kLocalityBlocks = 512;  // set aside at a time: s_mb_group_prealloc
constexpr std::uint64_t kMaxLogical = ~std::uint32_t{0};  // EXT_MAX_BLOCKS

std::uint64_t size_blocks(const Inode& inode, const Geometry& geometry) noexcept {
  return (inode.size + geometry.block_size - 1) >> geometry.block_bits;
}

// A stretch of the file, in blocks.
struct Window {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// The window by size alone: small files from their beginning on, larger ones by aligned pieces.
Window window_by_size(const AllocationContext& context, const Geometry& geometry) noexcept {
  static constexpr std::array<std::uint64_t, 7> kWhole{
      16 * kKiB, 32 * kKiB, 64 * kKiB, 128 * kKiB, 256 * kKiB, 512 * kKiB, kMiB};
  const std::uint32_t bits = geometry.block_bits;
  const FileRun& original = context.original;
  const std::uint64_t size =
      std::max(original.logical_end() << bits, std::uint64_t{context.inode.size});
  const auto* const whole = std::ranges::lower_bound(kWhole, size);
  if (whole != kWhole.end()) return {0, *whole >> bits};
  // Pieces do not get larger than a buddy can be, twice the bits of a byte times the block size.
  const std::uint64_t largest = std::uint64_t{2} << bits;
  struct Piece {
    std::uint64_t up_to;  // bytes
    std::uint64_t bytes;
    std::uint64_t largest;  // blocks
    std::uint64_t compared;
  };
  const std::array<Piece, 3> pieces{{
      {4 * kMiB, 2 * kMiB, 2 * kKiB, size},
      {8 * kMiB, 4 * kMiB, 4 * kKiB, size},
      {8 * kMiB, 8 * kMiB, 8 * kKiB, std::uint64_t{original.len} << bits},
  }};
  for (const Piece& piece : pieces) {
    if (piece.compared > piece.up_to && largest > piece.largest) continue;
    const std::uint64_t blocks = piece.bytes >> bits;
    const std::uint64_t start = original.logical / blocks * blocks;
    return {start, start + blocks};
  }
  return {original.logical, original.logical_end()};
}

// Cuts off what the windows before and behind the request have (ext4_mb_pa_adjust_overlap).
void cut_windows(const AllocationContext& context, Window& window) {
  if (context.inode.preallocations == nullptr) return;
  const auto& windows = context.inode.preallocations->by_start;
  const auto right = windows.upper_bound(context.original.logical);
  if (right != windows.end()) window.end = std::min<std::uint64_t>(window.end, right->first);
  if (right != windows.begin()) {
    const std::uint64_t left_end = std::prev(right)->second->logical_end();
    CHECK(left_end <= context.original.logical);
    window.start = std::max(window.start, left_end);
  }
}

void aim_at(AllocationContext& context, const Geometry& geometry, FsBlock block) {
  context.goal.group = geometry.group_of(block);
  context.goal.start = geometry.offset_in_group(block);
  context.try_goal = true;
}

}  // namespace

void choose_source(AllocationContext& context, const Geometry& geometry) {
  if (!context.data) return;
  const std::uint64_t end = context.original.logical_end();
  const std::uint64_t file_end = size_blocks(context.inode, geometry);
  // The last blocks of a file that nobody writes: nothing will follow.
  const bool finished = end == file_end && context.inode.writers == 0;
  if (std::max(end, file_end) <= kSmallFile) {
    context.small_file = true;
  } else if (finished) {
    context.no_preallocation = true;
  } else {
    context.stream = true;
  }
}

void normalise(AllocationContext& context, const AllocationRequest& request,
               const Geometry& geometry) {
  if (!context.data || context.no_preallocation) return;
  if (context.small_file) {
    // Since the goal's length is not that of the file, normalised_len stays what was asked for.
    context.goal.len = kLocalityBlocks;
    return;
  }
  const FileRun& original = context.original;
  Window window = window_by_size(context, geometry);
  const std::uint64_t per_group = geometry.blocks_per_group;
  std::uint64_t length = window.end - window.start;
  // A window that begins before the request may not be so long that it ends before it.
  window.start = std::max(window.start, original.logical / per_group * per_group);
  window.end = std::min(window.start + length, kMaxLogical);
  if (request.left && window.start <= request.left->logical.value()) {
    window.start = std::uint64_t{request.left->logical.value()} + 1;
  }
  if (request.right)
    window.end = std::min<std::uint64_t>(window.end, request.right->logical.value());
  window.end = std::min(window.end, window.start + per_group);
  cut_windows(context, window);
  CHECK(window.start <= original.logical && original.logical < window.end);
  length = window.end - window.start;

  context.goal.logical = static_cast<std::uint32_t>(window.start);
  context.goal.len = static_cast<std::uint32_t>(length);
  context.normalised_len = context.goal.len;
  // Next to the neighbour, the left one first.
  if (request.right && request.right->logical.value() == window.end &&
      request.right->physical.value() >= length + geometry.first_data_block) {
    aim_at(context, geometry, FsBlock{request.right->physical.value() - length});
  }
  if (request.left && std::uint64_t{request.left->logical.value()} + 1 == window.start &&
      request.left->physical.value() + 1 < geometry.blocks) {
    aim_at(context, geometry, FsBlock{request.left->physical.value() + 1});
  }
}

}  // namespace jbdlab::ext4
