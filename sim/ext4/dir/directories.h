#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ext4/dir/dir_block.h"
#include "sim/ext4/dir/htree.h"
#include "sim/ext4/extents/extent_map.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/journal.h"
#include "sim/ext4/types.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// Names in directories, linear and hashed (fs/ext4/namei.c and dir.c, 6.18).
//
// A directory of one block is linear. With the dir_index feature the entry that does not fit turns
// block 0 into the root of an index, and from then on every entry lives in the leaf that serves the
// hash of its name; without the feature the directory grows by a block and stays linear.
//
// Whoever calls holds the directory's lock for as long as it relies on what was found, and for
// changes an open handle. Blocks are first dirtied in the order of the kernel's, so that the tags
// of a transaction come out of doing it:
//   new entry                 directory's inode, leaf
//   block that is appended    directory's inode, block bitmap, descriptor (all three inside the
//                             allocator), new block
//   conversion                new leaf 1 (appended), root, new leaf 2 (appended), inode
//   split of a leaf           new leaf (appended); root or node, then the old leaf, if the new
//   entry
//                             stays in it, else the other way round
// Damage in a block that is read is Errno::euclean.
class Directories {
 public:
  Directories(Volume& volume, MetadataJournal& journal, InodeStore& inodes, ExtentMap& extents);
  Directories(const Directories&) = delete;
  Directories& operator=(const Directories&) = delete;

  // An entry and its place. The place is good until the directory changes.
  struct Found {
    Ino ino;
    FileType type = FileType::unknown;
    Buffer* buffer = nullptr;
    std::uint32_t offset = 0;
  };
  // `name` must live until the task is done.
  Task<KResult<std::optional<Found>>> lookup(Inode& dir, std::string_view name);

  // Adds an entry (ext4_add_entry): `now` becomes the directory's mtime and ctime, its inode is
  // dirtied, then the block. Errors: eexist (seen only if the entry stands before the free room),
  // enametoolong, enospc (no block, or the index is full).
  Task<KResult<void>> add_entry(Thread& thread, Inode& dir, std::string name, Ino ino,
                                FileType type, Timestamp now);

  // Gives a new directory its first block, with "." and "..", and two links (ext4_init_new_dir).
  // The inode is dirtied for the block that it gets, and by the caller once more.
  Task<KResult<void>> init_directory(Thread& thread, Inode& dir, Ino parent);

  // Takes an entry out (ext4_delete_entry): dirties its block. Times and the directory's inode are
  // the caller's business, afterwards.
  Task<KResult<void>> delete_entry(Thread& thread, Inode& dir, Found entry);
  // Lets an entry point at another inode (ext4_setent, rename over an existing name): `now` becomes
  // mtime and ctime of the directory, its inode is dirtied, then the block.
  Task<KResult<void>> replace_entry(Thread& thread, Inode& dir, Found entry, Ino ino, FileType type,
                                    Timestamp now);
  // A directory that moves gets a new parent: dirties its block 0. `old_parent` must be what is
  // there (ext4_rename_dir_prepare, ext4_rename_dir_finish).
  Task<KResult<void>> set_dotdot(Thread& thread, Inode& dir, Ino old_parent, Ino new_parent);

  // Nothing but "." and ".." (ext4_empty_dir)? A directory that is damaged is not empty.
  Task<KResult<bool>> is_empty(Inode& dir);

  // Everything that readdir gives, in its order: by hash in a directory that is or may become
  // hashed, as it lies on the disk otherwise.
  struct Entry {
    std::string name;
    Ino ino;
    FileType type = FileType::unknown;
  };
  Task<KResult<std::vector<Entry>>> read_all(Inode& dir);

 private:
  enum class Kind : std::uint8_t { leaf, index, any };
  // One step on the way from the root of an index to a leaf (struct dx_frame).
  struct Frame {
    Buffer* buffer;
    IndexTable table;
    std::uint32_t at;  // entry that was taken

    ByteSpan bytes() const { return buffer->data.bytes(); }
    MutableByteSpan mutate() const { return buffer->data.mutate(); }
    LogicalBlock target() const { return table.target(bytes(), at); }
    bool full() const { return table.full(bytes()); }
  };
  struct Path {
    DirHasher hasher;
    std::uint32_t hash = 0;     // of the name that is looked for
    std::vector<Frame> frames;  // root, nodes
  };
  struct NewBlock {
    Buffer* buffer;
    LogicalBlock logical;
  };
  // What to put where: the parameters of add_entry, which outlive everything below it.
  struct NewEntry {
    std::string_view name;
    Ino ino;
    FileType type;
    Timestamp now;
  };
  enum class Added : std::uint8_t { yes, no_room, bad_index };
  enum class IndexRoom : std::uint8_t { there, path_changed };

  bool is_hashed(const Inode& dir) const noexcept;
  std::uint32_t blocks_of(const Inode& dir) const noexcept;
  std::uint32_t seed_of(const Inode& dir) const noexcept;
  std::size_t max_frames() const noexcept;
  DirHasher hasher_of(DirHashVersion version) const noexcept;
  DirHashVersion new_hash_version() const noexcept;

  // Reading (directories.cc, read_directory.cc).
  Task<KResult<Buffer*>> read_block(Inode& dir, LogicalBlock block, Kind kind);  // null: a hole
  bool verify(const Inode& dir, LogicalBlock block, Kind kind, const Buffer& buffer) const;
  Task<KResult<void>> read_ahead(Inode& dir, std::uint32_t first, std::uint32_t count);
  Task<KResult<std::optional<Found>>> lookup_linear(Inode& dir, std::string_view name,
                                                    std::uint32_t blocks);
  // Nothing: an index that makes no sense (ERR_BAD_DX_DIR). Without a name: the way to hash 0.
  Task<KResult<std::optional<Path>>> probe(Inode& dir, std::optional<std::string_view> name);
  // Goes on to the next leaf; if `hash` is given, only to one that continues it. False: there is
  // none, and `path` leads nowhere now.
  Task<KResult<bool>> next_leaf(Inode& dir, Path& path, std::optional<std::uint32_t> hash);
  KResult<std::optional<Found>> search(const Inode& dir, Buffer& buffer,
                                       std::string_view name) const;

  // Changing (add_entry.cc, directories.cc).
  Task<KResult<void>> add_linear(Thread& thread, Inode& dir, const NewEntry& entry,
                                 bool may_convert);
  Task<KResult<Added>> add_hashed(Thread& thread, Inode& dir, const NewEntry& entry);
  Task<KResult<Added>> add_to_block(Thread& thread, Inode& dir, Buffer& buffer,
                                    std::optional<std::uint32_t> slot, const NewEntry& entry);
  Task<KResult<void>> convert(Thread& thread, Inode& dir, Buffer& block, const NewEntry& entry);
  Task<KResult<void>> split_and_add(Thread& thread, Inode& dir, Buffer& leaf, Path& path,
                                    const NewEntry& entry);
  Task<KResult<IndexRoom>> make_index_room(Thread& thread, Inode& dir, Path& path);
  void split_node(Thread& thread, Inode& dir, Path& path, std::size_t level, NewBlock fresh);
  void add_level(Thread& thread, Inode& dir, Path& path, NewBlock fresh);
  Task<KResult<Buffer*>> make_block(Thread& thread, Inode& dir, LogicalBlock block);
  Task<KResult<NewBlock>> append(Thread& thread, Inode& dir);
  void dirty_leaf(Thread& thread, Inode& dir, Buffer& buffer);
  void dirty_index(Thread& thread, Inode& dir, Buffer& buffer, const IndexTable& table);

  Volume& volume_;
  MetadataJournal& journal_;
  InodeStore& inodes_;
  ExtentMap& extents_;
  const DirFormat format_;
};

}  // namespace jbdlab::ext4
