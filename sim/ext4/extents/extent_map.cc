#include "sim/ext4/extents/extent_map.h"

#include <algorithm>

#include "base/check.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kEndOfFile = 0xffff'ffff;  // EXT_MAX_BLOCKS: no file block has this number

Mapping mapping_of(const Extent& extent, LogicalBlock first, std::uint32_t max_len) {
  const std::uint32_t skipped = first.value() - extent.first.value();
  return {.first = first,
          .len = std::min(extent.len - skipped, max_len),
          .physical = FsBlock{extent.physical.value() + skipped},
          .state = extent.unwritten ? MappingState::unwritten : MappingState::written};
}

// Where the hole at `first` ends, seen from the path.
std::uint32_t hole_end(const ExtentTree& tree, const ExtentPath& path, LogicalBlock first) {
  const auto near = tree.extent_at(path);
  if (near && first < near->first) return near->first.value();
  return tree.next_allocated(path).value_or(LogicalBlock{kEndOfFile}).value();
}

}  // namespace

void ExtentMap::init_root(Inode& inode) {
  inode.block.fill(std::byte{0});
  ExtentNodeEditor::build(inode.block, kRootEntries, 0);
  inode.flags |= kInodeExtents;
}

Task<KResult<Mapping>> ExtentMap::lookup(Inode& inode, LogicalBlock first, std::uint32_t max_len) {
  CHECK(max_len > 0);
  const auto guard = co_await inode.mapping_lock.lock();
  ExtentTree tree(s_, inode, nullptr);
  ExtentPath path;
  const auto found = co_await tree.find(first, path);
  if (!found) co_return std::unexpected(found.error());
  const auto near = tree.extent_at(path);
  if (near && near->contains(first)) co_return mapping_of(*near, first, max_len);
  co_return Mapping{.first = first,
                    .len = std::min(hole_end(tree, path, first) - first.value(), max_len),
                    .physical = FsBlock{0}};
}

Task<KResult<Mapping>> ExtentMap::map(Thread& thread, Inode& inode, LogicalBlock first,
                                      std::uint32_t len, MapFlags flags) {
  CHECK(thread.handle != nullptr);
  CHECK(len > 0 && len <= kEndOfFile - first.value());
  const auto guard = co_await inode.mapping_lock.lock();
  ExtentTree tree(s_, inode, &thread);
  ExtentPath path;
  const auto found = co_await tree.find(first, path);
  if (!found) co_return std::unexpected(found.error());

  const auto near = tree.extent_at(path);
  if (!near || !near->contains(first)) {
    const auto made = co_await allocate(thread, inode, tree, path, first, len, flags);
    co_return made;
  }
  const Mapping mapping = mapping_of(*near, first, len);
  if (near->unwritten) {
    if (flags.before_io) {
      const auto cut = co_await tree.split_out(path, first, mapping.len);
      if (!cut) co_return std::unexpected(cut.error());
    } else if (!flags.unwritten) {
      co_return std::unexpected(Errno::eopnotsupp);
    }
  }
  co_return mapping;
}

Task<KResult<Mapping>> ExtentMap::allocate(Thread& thread, Inode& inode, ExtentTree& tree,
                                           ExtentPath& path, LogicalBlock first, std::uint32_t len,
                                           MapFlags flags) {
  const auto left = tree.left_neighbour(path, first);
  const auto right = co_await tree.right_neighbour(path, first);
  if (!right) co_return std::unexpected(right.error());
  const std::uint32_t wanted = std::min({len, flags.unwritten ? kMaxUnwrittenLen : kMaxWrittenLen,
                                         hole_end(tree, path, first) - first.value()});
  const AllocationRequest request{.inode = inode,
                                  .logical = first,
                                  .goal = tree.goal(path, first),
                                  .len = wanted,
                                  .left = left,
                                  .right = *right,
                                  .data = inode.is_regular(),
                                  .delayed_reserved = flags.delayed_reserved,
                                  .no_normalise = flags.no_normalise};
  const auto given = co_await s_.blocks.allocate(thread, request);
  if (!given) co_return std::unexpected(given.error());
  CHECK(given->len > 0 && given->len <= wanted);

  const Extent extent{first, given->len, given->start, flags.unwritten};
  const ExtentTree::InsertMode mode{.merge = !flags.before_io,
                                    .delayed_reserved = flags.delayed_reserved};
  const auto inserted = co_await tree.insert(path, extent, mode);
  if (!inserted) {  // the data has a place and the tree has none: give it back
    s_.blocks.discard_preallocations(inode);
    if (flags.delayed_reserved) {  // free() takes off what was not counted yet
      inode.sectors += std::uint64_t{given->len} * (s_.volume.geometry().block_size / 512);
    }
    const auto freed = co_await s_.blocks.free(thread, inode, given->start, given->len, false);
    if (!freed) co_return std::unexpected(freed.error());
    co_return std::unexpected(inserted.error());
  }
  if (flags.delayed_reserved) {
    const auto claimed = co_await claim_delayed(thread, inode, given->len);
    if (!claimed) co_return std::unexpected(claimed.error());
  }
  inode.sync_tid = s_.journal.tid(thread);
  // What reads back the same without this transaction, fdatasync need not wait for.
  if (!flags.unwritten) inode.datasync_tid = inode.sync_tid;
  co_return Mapping{.first = first,
                    .len = given->len,
                    .physical = given->start,
                    .state = flags.unwritten ? MappingState::unwritten : MappingState::written,
                    .is_new = true};
}

// What was reserved is in use now (ext4_da_update_reserve_space).
Task<KResult<void>> ExtentMap::claim_delayed(Thread& thread, Inode& inode, std::uint32_t len) {
  CHECK(inode.reserved_blocks >= len);
  CHECK(s_.volume.delayed_blocks >= len);
  inode.reserved_blocks -= len;
  s_.volume.delayed_blocks -= len;
  inode.sectors += std::uint64_t{len} * (s_.volume.geometry().block_size / 512);
  const auto marked = co_await s_.inodes.dirty(thread, inode);
  if (!marked) co_return marked;
  // Nobody will write more: what was preallocated for the file is of no use.
  if (inode.reserved_blocks == 0 && inode.writers == 0) s_.blocks.discard_preallocations(inode);
  co_return KResult<void>{};
}

Task<KResult<void>> ExtentMap::convert_unwritten(Thread& thread, Inode& inode, LogicalBlock first,
                                                 std::uint32_t len) {
  CHECK(thread.handle != nullptr);
  CHECK(len <= kEndOfFile - first.value());
  const std::uint32_t end = first.value() + len;
  for (LogicalBlock at = first; at.value() < end;) {
    {
      const auto guard = co_await inode.mapping_lock.lock();
      ExtentTree tree(s_, inode, &thread);
      ExtentPath path;
      const auto found = co_await tree.find(at, path);
      if (!found) co_return found;
      const auto near = tree.extent_at(path);
      if (!near || !near->contains(at)) {
        at = LogicalBlock{hole_end(tree, path, at)};
        continue;
      }
      const Mapping mapping = mapping_of(*near, at, end - at.value());
      if (near->unwritten) {
        if (near->first != at || near->len > mapping.len) {
          const auto cut = co_await tree.split_out(path, at, mapping.len);
          if (!cut) co_return cut;
          const auto again = co_await tree.find(at, path);
          if (!again) co_return again;
        }
        const auto written = co_await tree.mark_written(path);
        if (!written) co_return written;
        inode.sync_tid = inode.datasync_tid = s_.journal.tid(thread);
      }
      at = LogicalBlock{at.value() + mapping.len};
    }
    const auto marked = co_await s_.inodes.mark_dirty(thread, inode);
    if (!marked) co_return marked;
  }
  co_return KResult<void>{};
}

namespace {

// Nodes of a tree of the greatest depth that `extents` changes touch (ext4_ext_index_trans_blocks).
std::uint32_t tree_credits(std::uint32_t extents, std::uint32_t block_size) noexcept {
  if (extents <= 1) return kMaxExtentDepth * 2 + extents;
  const std::uint32_t per_block = entries_per_block(block_size);
  return kMaxExtentDepth * 3 + (extents + per_block - 1) / per_block;
}

constexpr std::uint32_t kInodeCredits = 6;  // superblock, inode, xattrs (EXT4_META_TRANS_BLOCKS)

}  // namespace

std::uint32_t write_credits(const Geometry& geometry) noexcept {
  const std::uint32_t tree = tree_credits(1, geometry.block_size);
  const std::uint32_t places = tree + 1;  // blocks that may each lie in a group of their own
  const std::uint32_t descriptor_blocks =
      (geometry.groups + geometry.descs_per_block() - 1) / geometry.descs_per_block();
  // The kernel compares with the descriptor blocks what is left of the groups: on a file system of
  // one group it finds nothing to cut (ext4_meta_trans_blocks, seen with 6.18: 30 and not 19).
  const std::uint32_t groups = std::min(places, geometry.groups);
  const std::uint32_t descriptors = groups > descriptor_blocks ? descriptor_blocks : places;
  return tree + groups + descriptors + kInodeCredits;
}

std::uint32_t convert_credits(const Geometry& geometry, std::uint32_t largest_folio) noexcept {
  return 1 + tree_credits(largest_folio / geometry.block_size, geometry.block_size);
}

}  // namespace jbdlab::ext4
