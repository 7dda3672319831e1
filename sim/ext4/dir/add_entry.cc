// How directories grow: new entries, new blocks, the index. The functions follow those of
// fs/ext4/namei.c that they name, call for call where a call touches the journal.
#include <utility>

#include "base/check.h"
#include "sim/ext4/dir/directories.h"

namespace jbdlab::ext4 {

// ext4_getblk with EXT4_GET_BLOCKS_CREATE: a new block is zeroed and dirtied at once.
Task<KResult<Buffer*>> Directories::make_block(Thread& thread, Inode& dir, LogicalBlock block) {
  const KResult<Mapping> mapping = co_await extents_.map(thread, dir, block, 1, MapFlags{});
  if (!mapping) co_return std::unexpected(mapping.error());
  if (mapping->state == MappingState::hole) co_return std::unexpected(Errno::enospc);
  if (!mapping->is_new) co_return co_await volume_.buffers().read(mapping->physical);
  Buffer& buffer = volume_.buffers().get(mapping->physical);
  co_await journal_.get_create_access(thread, buffer);
  journal_.dirty_metadata(thread, buffer);
  buffer.verified = true;
  co_return &buffer;
}

// ext4_append.
Task<KResult<Directories::NewBlock>> Directories::append(Thread& thread, Inode& dir) {
  const LogicalBlock end{blocks_of(dir)};
  const KResult<Mapping> there = co_await extents_.lookup(dir, end, 1);
  if (!there) co_return std::unexpected(there.error());
  if (there->state != MappingState::hole) co_return std::unexpected(Errno::euclean);
  const KResult<Buffer*> buffer = co_await make_block(thread, dir, end);
  if (!buffer) co_return std::unexpected(buffer.error());
  dir.size += format_.block_size;
  dir.disk_size = dir.size;
  const KResult<void> marked = co_await inodes_.mark_dirty(thread, dir);
  if (!marked) co_return std::unexpected(marked.error());
  co_await journal_.get_write_access(thread, **buffer);
  co_return NewBlock{.buffer = *buffer, .logical = end};
}

Task<KResult<void>> Directories::init_directory(Thread& thread, Inode& dir, Ino parent) {
  dir.links = 2;
  dir.size = 0;
  const KResult<NewBlock> block = co_await append(thread, dir);
  if (!block) co_return std::unexpected(block.error());
  init_dot_entries(format_, block->buffer->data.mutate(), dir.ino, parent);
  dirty_leaf(thread, dir, *block->buffer);
  co_return KResult<void>{};
}

// ext4_add_entry.
Task<KResult<void>> Directories::add_entry(Thread& thread, Inode& dir, std::string name, Ino ino,
                                           FileType type, Timestamp now) {
  if (name.empty()) co_return std::unexpected(Errno::einval);
  if (name.size() > kNameMax) co_return std::unexpected(Errno::enametoolong);
  const NewEntry entry{.name = name, .ino = ino, .type = type, .now = now};
  const bool hashed = is_hashed(dir);
  if (hashed) {
    const KResult<Added> added = co_await add_hashed(thread, dir, entry);
    if (!added) co_return std::unexpected(added.error());
    if (*added == Added::yes) co_return KResult<void>{};
    // The index makes no sense. With checksums it would have been believed; without, it is dropped.
    if (format_.checksums) co_return std::unexpected(Errno::euclean);
    dir.flags &= ~kInodeIndex;
    const KResult<void> marked = co_await inodes_.mark_dirty(thread, dir);
    if (!marked) co_return marked;
  }
  co_return co_await add_linear(thread, dir, entry, !hashed);
}

Task<KResult<void>> Directories::add_linear(Thread& thread, Inode& dir, const NewEntry& entry,
                                            bool may_convert) {
  const std::uint32_t blocks = blocks_of(dir);
  const bool has_index = (volume_.geometry().compat & kCompatDirIndex) != 0;
  Buffer* fresh = nullptr;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const KResult<Buffer*> buffer = co_await read_block(dir, LogicalBlock{block}, Kind::leaf);
    if (!buffer) co_return std::unexpected(buffer.error());
    if (*buffer == nullptr) {  // a hole: filled in before the directory grows
      const KResult<Buffer*> made = co_await make_block(thread, dir, LogicalBlock{block});
      if (!made) co_return std::unexpected(made.error());
      fresh = *made;
      break;
    }
    const KResult<Added> added = co_await add_to_block(thread, dir, **buffer, std::nullopt, entry);
    if (!added) co_return std::unexpected(added.error());
    if (*added == Added::yes) co_return KResult<void>{};
    if (blocks == 1 && may_convert && has_index) {
      co_return co_await convert(thread, dir, **buffer, entry);
    }
  }
  if (fresh == nullptr) {
    const KResult<NewBlock> appended = co_await append(thread, dir);
    if (!appended) co_return std::unexpected(appended.error());
    fresh = appended->buffer;
  } else {
    co_await journal_.get_write_access(thread, *fresh);
  }
  init_empty_dir_block(format_, fresh->data.mutate());
  const KResult<Added> added = co_await add_to_block(thread, dir, *fresh, 0, entry);
  if (!added) co_return std::unexpected(added.error());
  co_return KResult<void>{};
}

// add_dirent_to_buf; with a `slot`, the entry there is known to have room.
Task<KResult<Directories::Added>> Directories::add_to_block(Thread& thread, Inode& dir,
                                                            Buffer& buffer,
                                                            std::optional<std::uint32_t> slot,
                                                            const NewEntry& entry) {
  if (!slot) {
    const std::expected<std::uint32_t, DirMiss> free =
        find_dir_slot(format_, buffer.data.bytes(), entry.name);
    if (!free) {
      if (free.error() == DirMiss::full) co_return Added::no_room;
      co_return std::unexpected(free.error() == DirMiss::exists ? Errno::eexist : Errno::euclean);
    }
    slot = *free;
  }
  co_await journal_.get_write_access(thread, buffer);
  insert_dir_entry(format_, buffer.data.mutate(), *slot,
                   {.ino = entry.ino, .type = entry.type, .name = entry.name});
  dir.mtime = dir.ctime = entry.now;
  if (!is_hashed(dir)) dir.flags &= ~kInodeIndex;  // ext4_update_dx_flag
  ++dir.version;
  const KResult<void> marked = co_await inodes_.mark_dirty(thread, dir);
  dirty_leaf(thread, dir, buffer);
  if (!marked) co_return std::unexpected(marked.error());
  co_return Added::yes;
}

// make_indexed_dir.
Task<KResult<void>> Directories::convert(Thread& thread, Inode& dir, Buffer& block,
                                         const NewEntry& entry) {
  co_await journal_.get_write_access(thread, block);
  const KResult<NewBlock> leaf = co_await append(thread, dir);
  if (!leaf) co_return std::unexpected(leaf.error());
  CHECK(leaf->logical == LogicalBlock{1});
  dir.flags |= kInodeIndex;
  if (!convert_to_index(format_, new_hash_version(), block.data.mutate(),
                        leaf->buffer->data.mutate())) {
    co_return std::unexpected(Errno::euclean);
  }
  Path path{.hasher = hasher_of(new_hash_version()), .frames = {}};
  path.hash = path.hasher(entry.name).major;
  path.frames.push_back({.buffer = &block, .table = IndexTable::of_root(format_), .at = 0});
  dirty_index(thread, dir, block, path.frames.back().table);
  dirty_leaf(thread, dir, *leaf->buffer);
  const KResult<void> added = co_await split_and_add(thread, dir, *leaf->buffer, path, entry);
  if (added) co_return added;
  // What has changed so far is consistent, and must be written with the inode that goes with it.
  const KResult<void> marked = co_await inodes_.mark_dirty(thread, dir);
  if (!marked) co_return marked;
  co_return added;
}

// ext4_dx_add_entry.
Task<KResult<Directories::Added>> Directories::add_hashed(Thread& thread, Inode& dir,
                                                          const NewEntry& entry) {
  for (;;) {
    KResult<std::optional<Path>> probed = co_await probe(dir, entry.name);
    if (!probed) co_return std::unexpected(probed.error());
    std::optional<Path> path = *std::move(probed);
    if (!path) co_return Added::bad_index;
    const KResult<Buffer*> leaf =
        co_await read_block(dir, path->frames.back().target(), Kind::leaf);
    if (!leaf) co_return std::unexpected(leaf.error());
    if (*leaf == nullptr) co_return std::unexpected(Errno::euclean);
    co_await journal_.get_write_access(thread, **leaf);
    const KResult<Added> added = co_await add_to_block(thread, dir, **leaf, std::nullopt, entry);
    if (!added || *added == Added::yes) co_return added;

    if (path->frames.back().full()) {
      const KResult<IndexRoom> room = co_await make_index_room(thread, dir, *path);
      if (!room) co_return std::unexpected(room.error());
      if (*room == IndexRoom::path_changed) continue;
    }
    const KResult<void> done = co_await split_and_add(thread, dir, **leaf, *path, entry);
    if (!done) co_return std::unexpected(done.error());
    co_return Added::yes;
  }
}

// do_split, and the entry that made it necessary.
Task<KResult<void>> Directories::split_and_add(Thread& thread, Inode& dir, Buffer& leaf, Path& path,
                                               const NewEntry& entry) {
  const KResult<NewBlock> fresh = co_await append(thread, dir);
  if (!fresh) co_return std::unexpected(fresh.error());
  Frame& frame = path.frames.back();
  co_await journal_.get_write_access(thread, leaf);
  co_await journal_.get_write_access(thread, *frame.buffer);

  const std::optional<LeafSplit> split =
      split_leaf(format_, path.hasher, leaf.data.mutate(), fresh->buffer->data.mutate());
  if (!split) co_return std::unexpected(Errno::euclean);
  frame.table.insert_after(frame.mutate(), frame.at, split->index_hash(), fresh->logical);
  const bool moves = path.hash >= split->hash;
  Buffer& home = moves ? *fresh->buffer : leaf;  // of the new entry
  dirty_leaf(thread, dir, moves ? leaf : *fresh->buffer);
  dirty_index(thread, dir, *frame.buffer, frame.table);
  const std::uint32_t slot = moves ? split->high_last : split->low_last;
  const KResult<Added> added = co_await add_to_block(thread, dir, home, slot, entry);
  if (!added) co_return std::unexpected(added.error());
  co_return KResult<void>{};
}

// The part of ext4_dx_add_entry that makes room for one more leaf where the lowest index block is
// full: the lowest one below a block with room is cut in two, or all of them are full and the root
// gets a level below it. `path` is good afterwards only if the lowest one was cut.
Task<KResult<Directories::IndexRoom>> Directories::make_index_room(Thread& thread, Inode& dir,
                                                                   Path& path) {
  std::size_t level = path.frames.size() - 1;
  while (level > 0 && path.frames[level - 1].full()) --level;
  if (level == 0 && path.frames.size() == max_frames()) co_return std::unexpected(Errno::enospc);

  const KResult<NewBlock> fresh = co_await append(thread, dir);
  if (!fresh) co_return std::unexpected(fresh.error());
  init_index_node(format_, fresh->buffer->data.mutate());
  co_await journal_.get_write_access(thread, *path.frames[level].buffer);
  if (level == 0) {
    add_level(thread, dir, path, *fresh);
    co_return IndexRoom::path_changed;
  }
  co_await journal_.get_write_access(thread, *path.frames[level - 1].buffer);
  split_node(thread, dir, path, level, *fresh);
  co_return level + 1 == path.frames.size() ? IndexRoom::there : IndexRoom::path_changed;
}

void Directories::split_node(Thread& thread, Inode& dir, Path& path, std::size_t level,
                             NewBlock fresh) {
  Frame& frame = path.frames[level];
  Frame& parent = path.frames[level - 1];
  const std::uint32_t count = frame.table.count(frame.bytes());
  const std::uint32_t low = count / 2;
  const std::uint32_t hash = frame.table.hash(frame.bytes(), low);
  frame.table.copy_to(frame.bytes(), low, count - low, frame.table, fresh.buffer->data.mutate());
  frame.table.set_count(frame.mutate(), low);
  Buffer* other = fresh.buffer;
  if (frame.at >= low) {
    frame.at -= low;
    std::swap(frame.buffer, other);
  }
  parent.table.insert_after(parent.mutate(), parent.at, hash, fresh.logical);
  dirty_index(thread, dir, *other, frame.table);
  dirty_index(thread, dir, *parent.buffer, parent.table);
  dirty_index(thread, dir, *frame.buffer, frame.table);
}

void Directories::add_level(Thread& thread, Inode& dir, Path& path, NewBlock fresh) {
  const Frame& root = path.frames.front();
  const IndexTable node = IndexTable::of_node(format_);
  root.table.copy_to(root.bytes(), 0, root.table.count(root.bytes()), node,
                     fresh.buffer->data.mutate());
  root.table.set_count(root.mutate(), 1);
  root.table.set_target(root.mutate(), 0, fresh.logical);
  const auto levels = static_cast<std::uint32_t>(path.frames.size());
  build_index_root_info({.hash_version = path.hasher.version, .levels = levels}, root.mutate());
  dirty_index(thread, dir, *root.buffer, root.table);
  dirty_index(thread, dir, *fresh.buffer, node);
}

}  // namespace jbdlab::ext4
