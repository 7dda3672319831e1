#include "sim/ext4/extents/extent_tree.h"

// Insertion: where an extent goes, and how a tree gets room for it.
namespace jbdlab::ext4 {
namespace {

constexpr std::unexpected<Errno> kDamaged{Errno::euclean};

}  // namespace

Task<KResult<void>> ExtentTree::insert(ExtentPath& path, Extent extent, InsertMode mode) {
  std::optional<std::uint32_t> joined;  // the entry that `extent` became a part of
  if (!path.empty && mode.merge) {
    const Level& leaf = path.leaf();
    std::uint32_t slot = leaf.slot;
    const Extent near = node(leaf).extent(slot);
    // Not with an entry that ends before it: then with the next one, if that begins behind it.
    if (slot + 1 < node(leaf).entries() && near.end() < extent.first.value()) ++slot;
    Extent candidate = node(leaf).extent(slot);
    if (can_merge(candidate, extent)) {
      candidate.len += extent.len;
      joined = slot;
    } else if (can_merge(extent, candidate)) {
      candidate.first = extent.first;
      candidate.physical = extent.physical;
      candidate.len += extent.len;
      joined = slot;
    }
    if (joined) {
      co_await access(leaf);
      edit(leaf).put(slot, candidate);
    }
  }

  if (!joined) {
    if (node(path.leaf()).full()) {
      const auto room = co_await make_room(path, extent.first, mode);
      if (!room) co_return room;
    }
    Level& leaf = path.leaf();
    co_await access(leaf);
    if (!path.empty && extent.first > node(leaf).first_of(leaf.slot)) ++leaf.slot;
    ExtentNodeEditor editor = edit(leaf);
    editor.open_gap(leaf.slot);
    editor.put(leaf.slot, extent);
    path.empty = false;
    joined = leaf.slot;
  }

  if (mode.merge) {
    const auto merged = co_await merge_around(path, *joined);
    if (!merged) co_return merged;
  }
  const auto corrected = co_await correct_indexes(path);
  if (!corrected) co_return corrected;
  const auto marked = co_await dirty(path.leaf());
  co_return marked;
}

// The leaf of `path` is full: moves the path to a leaf with room for `block`, which may be the next
// one, or is made (ext4_ext_insert_extent, ext4_ext_create_new_leaf).
Task<KResult<void>> ExtentTree::make_room(ExtentPath& path, LogicalBlock block, InsertMode mode) {
  const ExtentNode leaf = node(path.leaf());
  if (path.depth > 0 && block > leaf.first_of(leaf.entries() - 1)) {
    if (const auto next = next_from(path, path.depth - 1)) {
      ExtentPath there;
      const auto found = co_await find(*next, there);
      if (!found) co_return found;
      if (!node(there.leaf()).full()) {
        path = there;
        co_return KResult<void>{};
      }
    }
  }

  for (;;) {
    std::uint32_t at = path.depth;  // the lowest level whose node has room
    while (at > 0 && node(path.levels[at]).full()) --at;
    const bool splits = !node(path.levels[at]).full();
    if (splits) {
      const auto done = co_await split(path, at, block, mode);
      if (!done) co_return done;
    } else {
      if (path.depth == kMaxExtentDepth) co_return kDamaged;
      const auto grown = co_await grow(mode);
      if (!grown) co_return grown;
    }
    const auto found = co_await find(block, path);
    if (!found) co_return found;
    // Only the first growth makes room; the others must still split what moved down.
    if (splits || !node(path.leaf()).full()) co_return KResult<void>{};
  }
}

Task<KResult<FsBlock>> ExtentTree::new_block(FsBlock goal, bool try_goal, InsertMode mode) {
  const AllocationRequest request{.inode = inode_,
                                  .logical = LogicalBlock{0},
                                  .goal = goal,
                                  .len = 1,
                                  .left = std::nullopt,
                                  .right = std::nullopt,
                                  .data = false,
                                  .delayed_reserved = mode.delayed_reserved,
                                  .try_goal = try_goal};
  const auto given = co_await s_.blocks.allocate(*thread_, request);
  if (!given) co_return std::unexpected(given.error());
  if (mode.delayed_reserved) {  // nobody has counted it: write() reserves for data only
    inode_.sectors += s_.volume.geometry().block_size / 512;
    const auto marked = co_await s_.inodes.dirty(*thread_, inode_);
    if (!marked) co_return std::unexpected(marked.error());
  }
  co_return given->start;
}

ExtentNodeEditor ExtentTree::edit_new(Buffer& buffer, std::uint32_t depth) {
  return ExtentNodeEditor::build(buffer.data.mutate(), block_capacity(), depth);
}

// The tree becomes one level deeper: the root's contents move to a new block
// (ext4_ext_grow_indepth).
Task<KResult<void>> ExtentTree::grow(InsertMode mode) {
  const std::uint32_t depth = ExtentNode(ByteSpan{inode_.block}).depth();
  FsBlock goal{0};
  if (depth > 0) goal = ExtentNode(ByteSpan{inode_.block}).index(0).child;
  const bool beside = goal.value() > s_.volume.geometry().first_data_block;
  goal = beside ? FsBlock{goal.value() - 1} : s_.blocks.inode_goal(*thread_, inode_);
  const auto block = co_await new_block(goal, beside, mode);
  if (!block) co_return std::unexpected(block.error());

  Buffer& buffer = s_.volume.buffers().get(*block);
  co_await s_.journal.get_create_access(*thread_, buffer);
  ExtentNodeEditor below = edit_new(buffer, depth);
  below.append_from(ExtentNode(ByteSpan{inode_.block}), ByteSpan{inode_.block}, 0);
  buffer.verified = true;
  const auto marked = co_await dirty(Level{&buffer, 0});
  if (!marked) co_return marked;

  ExtentNodeEditor root(inode_.block);  // its first entry keeps its logical block
  root.set_entries(1);
  root.set_max(kRootEntries);
  root.set_depth(depth + 1);
  root.set_child(0, *block);
  const auto root_marked = co_await s_.inodes.mark_dirty(*thread_, inode_);
  co_return root_marked;
}

// Makes a leaf for what is behind the path's entry, and an index node for each full level between
// it and level `at`, which has room for one more entry. A file that grows at its end leaves the old
// leaf as it is: nothing is behind, and the new leaf stays empty (ext4_ext_split).
Task<KResult<void>> ExtentTree::split(const ExtentPath& path, std::uint32_t at, LogicalBlock block,
                                      InsertMode mode) {
  std::array<FsBlock, kMaxExtentDepth> fresh{};
  const std::uint32_t wanted = path.depth - at;
  const FsBlock near = goal(path, block);
  for (std::uint32_t i = 0; i < wanted; ++i) {
    const auto given = co_await new_block(near, false, mode);
    if (!given) {
      for (std::uint32_t j = 0; j < i; ++j) {
        const auto freed = co_await s_.blocks.free(*thread_, inode_, fresh[j], 1, false);
        if (!freed) co_return freed;
      }
      co_return std::unexpected(given.error());
    }
    fresh[i] = *given;
  }
  const auto filled = co_await fill_split(path, at, block, fresh);
  co_return filled;
}

Task<KResult<void>> ExtentTree::fill_split(const ExtentPath& path, std::uint32_t at,
                                           LogicalBlock block,
                                           const std::array<FsBlock, kMaxExtentDepth>& fresh) {
  // The border is where what moves begins, or the new extent itself if nothing does.
  const Level& leaf = path.leaf();
  const bool moves = leaf.slot + 1 < node(leaf).entries();
  const LogicalBlock border = moves ? node(leaf).first_of(leaf.slot + 1) : block;

  // From the leaf up; the blocks are used in the reverse order of their allocation.
  FsBlock child{0};
  for (std::uint32_t i = path.depth; i > at; --i) {
    const Level& old = path.levels[i];
    const FsBlock place = fresh[i - at - 1];
    Buffer& buffer = s_.volume.buffers().get(place);
    co_await s_.journal.get_create_access(*thread_, buffer);
    ExtentNodeEditor editor = edit_new(buffer, path.depth - i);
    if (i < path.depth) {
      editor.set_entries(1);
      editor.put(0, ExtentIndex{border, child});
    }
    const ExtentNode from = node(old);
    const std::uint32_t kept = old.slot + 1, moved = from.entries() - kept;
    editor.append_from(from, bytes(old), kept);
    buffer.verified = true;
    const auto marked = co_await dirty(Level{&buffer, 0});
    if (!marked) co_return marked;
    if (moved > 0) {
      co_await access(old);
      edit(old).set_entries(kept);
      const auto old_marked = co_await dirty(old);
      if (!old_marked) co_return old_marked;
    }
    child = place;
  }
  const auto inserted = co_await insert_index(path.levels[at], ExtentIndex{border, child});
  co_return inserted;
}

Task<KResult<void>> ExtentTree::insert_index(const Level& level, ExtentIndex index) {
  co_await access(level);
  const LogicalBlock here = node(level).first_of(level.slot);
  if (index.first <= here) co_return kDamaged;
  const std::uint32_t slot = level.slot + 1;  // what splits off lies behind what stays
  ExtentNodeEditor editor = edit(level);
  editor.open_gap(slot);
  editor.put(slot, index);
  const auto marked = co_await dirty(level);
  co_return marked;
}

}  // namespace jbdlab::ext4
