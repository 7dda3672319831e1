#include "sim/ext4/extents/extent_tree.h"

#include "base/check.h"
#include "sim/ext4/inode_seed.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::unexpected<Errno> kDamaged{Errno::euclean};

}  // namespace

std::uint32_t ExtentTree::block_capacity() const noexcept {
  return entries_per_block(s_.volume.geometry().block_size);
}

NodeRules ExtentTree::rules(std::uint32_t depth, bool root) const noexcept {
  const Geometry& geometry = s_.volume.geometry();
  return {depth, root ? kRootEntries : block_capacity(), FsBlock{geometry.first_data_block},
          FsBlock{geometry.blocks}};
}

std::uint32_t ExtentTree::checksum_seed() const noexcept {
  return inode_checksum_seed(s_.volume.geometry(), inode_.ino, inode_.generation);
}

ByteSpan ExtentTree::bytes(const Level& level) const {
  return level.buffer != nullptr ? level.buffer->data.bytes() : ByteSpan{inode_.block};
}

ExtentNode ExtentTree::node(const Level& level) const { return ExtentNode(bytes(level)); }

ExtentNodeEditor ExtentTree::edit(const Level& level) {
  return ExtentNodeEditor(level.buffer != nullptr ? level.buffer->data.mutate()
                                                  : MutableByteSpan{inode_.block});
}

KResult<void> ExtentTree::check_block(Buffer& buffer, std::uint32_t depth,
                                      LogicalBlock first) const {
  const NodeRules node_rules = rules(depth, false);
  const auto checked = ExtentNode::parse(buffer.data.bytes(), node_rules);
  if (!checked) return kDamaged;
  if (buffer.verified) return {};  // the checksum and all entries, at the first sight of it
  if (!checked->check_entries(node_rules) || checked->entries() == 0 ||
      checked->first_of(0) != first) {
    return kDamaged;
  }
  if (s_.volume.geometry().metadata_csum() &&
      checked->stored_checksum() != checked->checksum(checksum_seed())) {
    return kDamaged;
  }
  buffer.verified = true;
  return {};
}

// Goes down as far as the buffers are in memory: yields the block that must be read first, or none
// when `path` is complete.
KResult<std::optional<FsBlock>> ExtentTree::descend(LogicalBlock block, ExtentPath& path) const {
  const std::uint32_t depth = ExtentNode(ByteSpan{inode_.block}).depth();
  if (depth > kMaxExtentDepth) return kDamaged;
  const NodeRules root_rules = rules(depth, true);
  const auto root = ExtentNode::parse(ByteSpan{inode_.block}, root_rules);
  if (!root || !root->check_entries(root_rules)) return kDamaged;

  path.depth = depth;
  path.levels[0] = {};
  for (std::uint32_t i = 0; i < depth; ++i) {
    Level& level = path.levels[i];
    const ExtentNode here = node(level);
    level.slot = here.search(block);
    const ExtentIndex down = here.index(level.slot);
    if (down.child.value() >= s_.volume.geometry().blocks) return kDamaged;
    Buffer* buffer = s_.volume.buffers().find(down.child);
    if (buffer == nullptr || !buffer->uptodate) return down.child;
    const auto checked = check_block(*buffer, depth - i - 1, down.first);
    if (!checked) return kDamaged;
    path.levels[i + 1] = {buffer, 0};
  }
  const ExtentNode leaf = node(path.leaf());
  path.empty = leaf.entries() == 0;
  if (!path.empty) path.leaf().slot = leaf.search(block);
  return std::nullopt;
}

Task<KResult<void>> ExtentTree::find(LogicalBlock block, ExtentPath& path) {
  for (;;) {
    const auto missing = descend(block, path);
    if (!missing) co_return std::unexpected(missing.error());
    if (!*missing) co_return KResult<void>{};
    co_await s_.volume.buffers().read(**missing);
  }
}

std::optional<Extent> ExtentTree::extent_at(const ExtentPath& path) const {
  if (path.empty) return std::nullopt;
  return node(path.leaf()).extent(path.leaf().slot);
}

std::optional<LogicalBlock> ExtentTree::next_from(const ExtentPath& path,
                                                  std::uint32_t level) const {
  for (std::uint32_t i = level + 1; i-- > 0;) {
    const ExtentNode here = node(path.levels[i]);
    if (path.levels[i].slot + 1 < here.entries()) return here.first_of(path.levels[i].slot + 1);
  }
  return std::nullopt;
}

std::optional<LogicalBlock> ExtentTree::next_allocated(const ExtentPath& path) const {
  return next_from(path, path.depth);
}

std::optional<Neighbour> ExtentTree::left_neighbour(const ExtentPath& path,
                                                    LogicalBlock block) const {
  const auto near = extent_at(path);
  if (!near || block < near->first) return std::nullopt;
  return Neighbour{LogicalBlock{near->first.value() + near->len - 1},
                   FsBlock{near->physical.value() + near->len - 1}};
}

Task<KResult<std::optional<Neighbour>>> ExtentTree::right_neighbour(const ExtentPath& path,
                                                                    LogicalBlock block) {
  using Answer = KResult<std::optional<Neighbour>>;
  const auto near = extent_at(path);
  if (!near) co_return Answer{std::nullopt};
  if (block < near->first) co_return Answer{Neighbour{near->first, near->physical}};
  const Level& leaf = path.leaf();
  if (leaf.slot + 1 < node(leaf).entries()) {
    const Extent next = node(leaf).extent(leaf.slot + 1);
    co_return Answer{Neighbour{next.first, next.physical}};
  }
  const auto next = next_allocated(path);
  if (!next) co_return Answer{std::nullopt};
  ExtentPath there;  // the first entry of the next leaf
  const auto found = co_await find(*next, there);
  if (!found) co_return std::unexpected(found.error());
  const auto extent = extent_at(there);
  if (!extent || extent->first <= block) co_return kDamaged;
  co_return Answer{Neighbour{extent->first, extent->physical}};
}

// A neighbour's place, moved by the distance in the file: a file whose holes will be filled later
// becomes contiguous.
FsBlock ExtentTree::goal(const ExtentPath& path, LogicalBlock block) const {
  if (const auto near = extent_at(path)) {
    return FsBlock{near->physical.value() + block.value() - near->first.value()};
  }
  if (path.leaf().buffer != nullptr) return path.leaf().buffer->block;
  return s_.blocks.inode_goal(*thread_, inode_);
}

Task<> ExtentTree::access(const Level& level) {
  if (level.buffer != nullptr) co_await s_.journal.get_write_access(*thread_, *level.buffer);
}

Task<KResult<void>> ExtentTree::dirty(const Level& level) {
  if (level.buffer == nullptr) {
    const auto marked = co_await s_.inodes.mark_dirty(*thread_, inode_);
    co_return marked;
  }
  if (s_.volume.geometry().metadata_csum()) edit(level).update_checksum(checksum_seed());
  s_.journal.dirty_metadata(*thread_, *level.buffer);
  co_return KResult<void>{};
}

// ---- merging

// Merges the entries behind `slot` into it as far as they continue it.
bool ExtentTree::merge_right(const Level& leaf, std::uint32_t slot) {
  bool merged = false;
  while (slot + 1 < node(leaf).entries()) {
    Extent here = node(leaf).extent(slot);
    const Extent next = node(leaf).extent(slot + 1);
    if (!can_merge(here, next)) break;
    here.len += next.len;
    ExtentNodeEditor editor = edit(leaf);
    editor.put(slot, here);
    editor.remove(slot + 1);
    merged = true;
  }
  return merged;
}

Task<KResult<void>> ExtentTree::merge_around(ExtentPath& path, std::uint32_t slot) {
  const bool merged = slot > 0 && merge_right(path.leaf(), slot - 1);
  if (!merged) merge_right(path.leaf(), slot);
  const auto up = co_await merge_up(path);
  co_return up;
}

// A leaf that is alone and fits into the root goes there, if the handle has room for what freeing
// its block dirties: a bitmap and a descriptor block (ext4_ext_try_to_merge_up).
Task<KResult<void>> ExtentTree::merge_up(ExtentPath& path) {
  if (path.depth != 1) co_return KResult<void>{};
  const Level leaf = path.leaf();
  if (node(path.levels[0]).entries() != 1 || node(leaf).entries() > kRootEntries) {
    co_return KResult<void>{};
  }
  if (!s_.journal.extend(*thread_, 2)) co_return KResult<void>{};

  ExtentNodeEditor root = ExtentNodeEditor::build(inode_.block, kRootEntries, 0);
  root.append_from(node(leaf), bytes(leaf), 0);
  path.depth = 0;
  path.levels[0] = {nullptr, leaf.slot};
  leaf.buffer->verified = false;
  const FsBlock block = leaf.buffer->block;
  const auto freed = co_await s_.blocks.free(*thread_, inode_, block, 1, true);
  co_return freed;
}

// The leaf's first entry may begin earlier now: so do the index entries that lead to it
// (ext4_ext_correct_indexes).
Task<KResult<void>> ExtentTree::correct_indexes(const ExtentPath& path) {
  if (path.depth == 0 || path.leaf().slot != 0) co_return KResult<void>{};
  const LogicalBlock border = node(path.leaf()).first_of(0);
  for (std::uint32_t i = path.depth; i-- > 0;) {
    const Level& level = path.levels[i];
    if (i + 1 < path.depth && path.levels[i + 1].slot != 0) break;
    co_await access(level);
    edit(level).set_first(level.slot, border);
    const auto marked = co_await dirty(level);
    if (!marked) co_return marked;
  }
  co_return KResult<void>{};
}

// ---- changing what is there

// The extent at the path's end becomes two, the second beginning at `at`, which lies inside of it
// (ext4_split_extent_at, without a change of kind).
Task<KResult<void>> ExtentTree::split_at(ExtentPath& path, LogicalBlock at) {
  const Level leaf = path.leaf();
  const Extent whole = node(leaf).extent(leaf.slot);
  CHECK(whole.contains(at));
  co_await access(leaf);
  if (at == whole.first) {
    const auto marked = co_await dirty(leaf);
    co_return marked;
  }
  Extent head = whole, tail = whole;
  head.len = at.value() - whole.first.value();
  tail.first = at;
  tail.len = whole.len - head.len;
  tail.physical = FsBlock{whole.physical.value() + head.len};
  edit(leaf).put(leaf.slot, head);
  const auto marked = co_await dirty(leaf);
  if (!marked) co_return marked;

  const InsertMode mode{.merge = false};
  const auto inserted = co_await insert(path, tail, mode);
  if (inserted || inserted.error() != Errno::enospc) co_return inserted;
  // No block for a node: the extent is whole again. (The tree did not change where it lies.)
  const auto found = co_await find(whole.first, path);
  if (!found) co_return found;
  const Level& again = path.leaf();
  co_await access(again);
  edit(again).put(again.slot, whole);
  const auto restored = co_await dirty(again);
  if (!restored) co_return restored;
  co_return inserted;
}

Task<KResult<void>> ExtentTree::split_out(ExtentPath& path, LogicalBlock first, std::uint32_t len) {
  const auto whole = extent_at(path);
  CHECK(whole && whole->contains(first) && first.value() + std::uint64_t{len} <= whole->end());
  if (first.value() + std::uint64_t{len} < whole->end()) {
    const auto cut = co_await split_at(path, LogicalBlock{first.value() + len});
    if (!cut) co_return cut;
    const auto found = co_await find(first, path);
    if (!found) co_return found;
  }
  const auto cut = co_await split_at(path, first);
  co_return cut;
}

Task<KResult<void>> ExtentTree::mark_written(ExtentPath& path) {
  co_await access(path.leaf());
  const std::uint32_t slot = path.leaf().slot;
  Extent extent = node(path.leaf()).extent(slot);
  extent.unwritten = false;
  edit(path.leaf()).put(slot, extent);
  const auto merged = co_await merge_around(path, slot);
  if (!merged) co_return merged;
  const auto marked = co_await dirty(path.leaf());
  co_return marked;
}

}  // namespace jbdlab::ext4
