#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/block_ref.h"
#include "base/ids.h"
#include "base/time.h"
#include "sim/engine/sync.h"
#include "sim/ext4/types.h"

namespace jbdlab::ext4 {

class InodePreallocations;  // alloc/: mballoc's windows of this file
class PageCache;            // page_cache.h: the file's pages

// A time stamp as inodes keep it.
struct Timestamp {
  std::int64_t sec = 0;
  std::uint32_t nsec = 0;
  friend auto operator<=>(const Timestamp&, const Timestamp&) = default;
};

// Mode bits (include/uapi/linux/stat.h).
inline constexpr std::uint16_t kModeTypeMask = 0xF000;
inline constexpr std::uint16_t kModeDirectory = 0x4000;
inline constexpr std::uint16_t kModeRegular = 0x8000;
inline constexpr std::uint16_t kModeSymlink = 0xA000;
inline constexpr std::uint16_t kModeFifo = 0x1000;

// i_flags on disk.
inline constexpr std::uint32_t kInodeSync = 0x8, kInodeNoAtime = 0x80, kInodeIndex = 0x1000,
                               kInodeJournalData = 0x4000, kInodeDirSync = 0x10000,
                               kInodeExtents = 0x80000, kInodeInlineData = 0x10000000;

// An inode in memory: VFS inode and ext4_inode_info in one. `raw` on the disk lags behind until
// mark_inode_dirty() copies it into its table block. Identity: one object for each inode in use.
struct Inode {
  explicit Inode(Ino number, sim::Engine& engine);
  ~Inode();
  Inode(const Inode&) = delete;
  Inode& operator=(const Inode&) = delete;

  const Ino ino;
  std::uint16_t mode = 0;
  std::uint32_t uid = 0, gid = 0;
  std::uint32_t links = 0;
  std::uint32_t flags = 0;       // i_flags
  std::uint32_t generation = 0;
  std::uint16_t extra_isize = 0;
  std::uint64_t size = 0;        // i_size, bytes
  std::uint64_t disk_size = 0;   // i_disksize: what the inode on the disk may say
  std::uint64_t sectors = 0;     // i_blocks, 512 bytes
  Timestamp atime, mtime, ctime, crtime;
  std::uint32_t dtime = 0;       // when it was freed, seconds
  bool ctime_queried = false;    // multigrain: somebody has looked since it was last set
  std::uint64_t version = 1;     // i_version
  std::array<std::byte, 60> block{};  // i_block: the extent root, or a fast symbolic link

  bool is_directory() const noexcept { return (mode & kModeTypeMask) == kModeDirectory; }
  bool is_regular() const noexcept { return (mode & kModeTypeMask) == kModeRegular; }

  Tid sync_tid, datasync_tid;    // last transaction that changed it; that changed what data needs
  std::uint32_t reserved_blocks = 0;  // delayed, not allocated (i_reserved_data_blocks)
  std::uint32_t writers = 0;     // open files that may write (i_writecount)
  bool fresh = false;            // never written to the inode table
  std::uint64_t dirty_order = 0; // its place in the flusher's list; 0: not in it
  Time dirtied{};                // since when it has been there
  GroupNo group;                 // i_block_group: where the inode lies
  GroupNo last_alloc_group{0xffff'ffff};  // directories: Orlov's memory of the last child
  sim::Mutex lock;               // i_rwsem
  sim::Mutex mapping_lock;       // i_data_sem: the extent tree changes under it
  std::unique_ptr<InodePreallocations> preallocations;
  std::unique_ptr<PageCache> pages;
};

// The inodes in memory, and their way to and from the inode table (fs/ext4/inode.c: ext4_iget,
// ext4_do_update_inode, ext4_mark_inode_dirty).
class InodeStore {
 public:
  virtual ~InodeStore() = default;
  // The inode, read from its table block if need be. Errors: euclean (bad checksum, out of range).
  virtual Task<KResult<Inode*>> get(Thread& thread, Ino ino) = 0;
  // Takes the table block into the handle and writes the inode into it: the inode is part of the
  // transaction (and sync_tid is its tid). Opens no handle.
  virtual Task<KResult<void>> mark_dirty(Thread& thread, Inode& inode) = 0;
  // The same inside a start of its own (type INODE, 2 credits), as ext4_dirty_inode does: nested if
  // a handle is open. What changes i_blocks calls this.
  virtual Task<KResult<void>> dirty(Thread& thread, Inode& inode) = 0;
};

}  // namespace jbdlab::ext4
