// Paths, and what makes and opens files. Source: fs/namei.c, fs/ext4/namei.c (ext4_create,
// ext4_mkdir), fs/ext4/ialloc.c (__ext4_new_inode), fs/ext4/file.c (ext4_file_open).

#include <algorithm>

#include "base/check.h"
#include "sim/ext4/file_system.h"

namespace jbdlab::ext4 {
namespace {

constexpr Ino kRoot{2};
constexpr std::uint32_t kLinkMax = 65000;  // EXT4_LINK_MAX
// Handle of a create, mknod, mkdir: EXT4_DATA_TRANS_BLOCKS 24, EXT4_INDEX_EXTRA_TRANS_BLOCKS 12,
// bitmap, group and inode 3; a create asks for 7 more, for attributes that the new inode may get.
constexpr std::uint32_t kNewInodeCredits = 24 + 12 + 3 + 7;
// Flags that a new inode takes from its directory (EXT4_FL_INHERITED): compression, sync, append
// and the like; and those that make sense for files and others.
constexpr std::uint32_t kInherited = 0x2000'0000 | 0x20 | 0x1 | 0x2 | 0x4 | kInodeSync | 0x40 |
                                     kInodeNoAtime | 0x400 | kInodeJournalData | 0x8000 |
                                     kInodeDirSync | 0x4000'0000 | 0x200'0000;
constexpr std::uint32_t kRegularMask = ~(kInodeDirSync | kInodeTopDir | 0x4000'0000U);
constexpr std::size_t kLastMounted = 0x88, kLastMountedSize = 64;

}  // namespace

Task<KResult<Inode*>> FileSystem::lookup(Thread& thread, Inode& directory,
                                         const std::string& name) {
  if (name.size() > kNameMax) co_return std::unexpected(Errno::enametoolong);
  const auto& names = names_[directory.ino];
  const auto known = names.find(name);
  if (known != names.end()) co_return co_await inodes_->get(thread, known->second);
  const auto found = co_await directories_->lookup(directory, name);
  if (!found) co_return std::unexpected(found.error());
  if (!*found) co_return std::unexpected(Errno::enoent);
  const Ino ino = (*found)->ino;
  names_[directory.ino][name] = ino;
  co_return co_await inodes_->get(thread, ino);
}

Task<KResult<FileSystem::Name>> FileSystem::walk_to_parent(Thread& thread, std::string_view path) {
  const KResult<Inode*> root = co_await inodes_->get(thread, kRoot);
  if (!root) co_return std::unexpected(root.error());
  Inode* directory = *root;
  for (;;) {
    while (path.starts_with('/')) path.remove_prefix(1);
    const std::size_t slash = path.find('/');
    std::string name(path.substr(0, slash));
    const std::string_view rest =
        slash == std::string_view::npos ? std::string_view() : path.substr(slash);
    if (rest.find_first_not_of('/') == std::string_view::npos) {
      co_return Name{directory, std::move(name)};
    }
    path = rest;
    if (name == ".") continue;
    const KResult<Inode*> next = co_await lookup(thread, *directory, name);
    if (!next) co_return std::unexpected(next.error());
    if (!(*next)->is_directory()) co_return std::unexpected(Errno::enotdir);
    directory = *next;
  }
}

Task<KResult<Inode*>> FileSystem::walk(Thread& thread, std::string_view path) {
  const KResult<Name> at = co_await walk_to_parent(thread, path);
  if (!at) co_return std::unexpected(at.error());
  if (at->name.empty() || at->name == ".") co_return at->directory;
  const KResult<Inode*> inode = co_await lookup(thread, *at->directory, at->name);
  if (inode && path.ends_with('/') && !(*inode)->is_directory()) {
    co_return std::unexpected(Errno::enotdir);
  }
  co_return inode;
}

// The first file that is opened after the mount puts the mount point into the superblock, through
// the journal (ext4_sample_last_mounted).
Task<KResult<void>> FileSystem::sample_mount_point(Thread& thread) {
  if (mount_point_sampled_) co_return KResult<void>();
  mount_point_sampled_ = true;
  const KResult<void> started = co_await journal_->start(thread, HandleType::misc, 1);
  if (!started) co_return started;
  Buffer& buffer = volume_->super_buffer();
  co_await journal_->get_write_access(thread, buffer);
  const MutableByteSpan field = volume_->mutate_super().subspan(kLastMounted, kLastMountedSize);
  std::ranges::fill(field, std::byte{0});
  const std::size_t length = std::min(config_.mount_point.size(), kLastMountedSize);
  std::ranges::copy(std::as_bytes(std::span(config_.mount_point)).first(length), field.begin());
  volume_->update_super_checksum();
  journal_->dirty_metadata(thread, buffer);
  co_await journal_->stop(thread);
  co_return KResult<void>();
}

// Needs an open handle. The inode is in the transaction when this returns.
Task<KResult<Inode*>> FileSystem::new_inode(Thread& thread, Inode& directory,
                                            const std::string& name, std::uint16_t mode) {
  const KResult<Ino> ino = co_await inode_allocator_->allocate(thread, directory, mode, name);
  if (!ino) co_return std::unexpected(ino.error());
  const Geometry& geometry = volume_->geometry();
  Inode& inode = inodes_->create(*ino);
  inode.mode = mode;
  inode.links = 1;
  inode.flags = directory.flags & kInherited;
  if (!inode.is_directory()) inode.flags &= kRegularMask;
  inode.generation = static_cast<std::uint32_t>(random_.next());
  inode.extra_isize =
      geometry.inode_size > 128 ? static_cast<std::uint16_t>(geometry.want_extra_isize) : 0;
  inode.atime = inode.mtime = inode.crtime = clock_.set_ctime(inode);
  if ((geometry.incompat & kIncompatExtents) != 0) {
    inode.flags |= kInodeExtents;
    ExtentMap::init_root(inode);
  }
  const KResult<void> dirtied = co_await inodes_->mark_dirty(thread, inode);
  if (!dirtied) co_return std::unexpected(dirtied.error());
  inodes_->touch(thread, inode, true);
  co_return &inode;
}

// What is made of a new inode whose directory entry finds no room, in the handle that made it: the
// inode and the block that a new directory has are free again. Whoever reads the log sees an inode
// that was never there; the kernel puts it on the list of orphans and frees it in a handle of its
// own (ext4_create, ext4_evict_inode).
Task<> FileSystem::drop_new_inode(Thread& thread, Inode& inode) {
  if (inode.sectors > 0) {
    const KResult<Mapping> first = co_await extents_->lookup(inode, LogicalBlock{0}, 1);
    if (first && first->state != MappingState::hole) {
      static_cast<void>(
          co_await block_allocator_->free(thread, inode, first->physical, first->len, true));
    }
    ExtentMap::init_root(inode);
  }
  inode.links = 0;
  inode.size = inode.disk_size = 0;
  inode.dtime = static_cast<std::uint32_t>(clock_.coarse().sec);
  static_cast<void>(co_await inodes_->mark_dirty(thread, inode));
  static_cast<void>(co_await inode_allocator_->release(thread, inode));
  inodes_->forget(inode.ino);
}

Task<KResult<Inode*>> FileSystem::create(Thread& thread, Inode& directory, std::string name,
                                         std::uint16_t mode) {
  const KResult<void> started =
      co_await journal_->start(thread, HandleType::dir, kNewInodeCredits);
  if (!started) co_return std::unexpected(started.error());
  const KResult<Inode*> inode = co_await new_inode(
      thread, directory, name, static_cast<std::uint16_t>(kModeRegular | mode));
  if (!inode) {
    co_await journal_->stop(thread);
    co_return inode;
  }
  const KResult<void> added = co_await directories_->add_entry(
      thread, directory, name, (*inode)->ino, FileType::regular, clock_.set_ctime(directory));
  KResult<void> dirtied;
  if (added) {
    dirtied = co_await inodes_->mark_dirty(thread, **inode);
  } else {
    co_await drop_new_inode(thread, **inode);
  }
  co_await journal_->stop(thread);
  if (!added) co_return std::unexpected(added.error());
  if (!dirtied) co_return std::unexpected(dirtied.error());
  names_[directory.ino][std::move(name)] = (*inode)->ino;
  co_return inode;
}

Task<KResult<void>> FileSystem::make_directory(Thread& thread, Inode& directory, std::string name,
                                               std::uint16_t mode) {
  const KResult<void> started =
      co_await journal_->start(thread, HandleType::dir, kNewInodeCredits);
  if (!started) co_return started;
  const auto whole_mode = static_cast<std::uint16_t>(kModeDirectory | mode);
  const KResult<Inode*> inode = co_await new_inode(thread, directory, name, whole_mode);
  KResult<void> done;
  if (!inode) done = std::unexpected(inode.error());
  if (done) done = co_await directories_->init_directory(thread, **inode, directory.ino);
  if (done) done = co_await inodes_->mark_dirty(thread, **inode);
  if (done) {
    done = co_await directories_->add_entry(thread, directory, name, (*inode)->ino,
                                            FileType::directory, clock_.set_ctime(directory));
  }
  if (done) {
    // Beyond the limit a directory's links count as one: "unknown" (dir_nlink).
    ++directory.links;
    if (directory.links >= kLinkMax) directory.links = 1;
    done = co_await inodes_->mark_dirty(thread, directory);
  } else if (inode) {
    co_await drop_new_inode(thread, **inode);
  }
  co_await journal_->stop(thread);
  if (done) names_[directory.ino][std::move(name)] = (*inode)->ino;
  co_return done;
}

Task<KResult<void>> FileSystem::mkdir(Thread& thread, std::string_view path, std::uint16_t mode) {
  co_await engine_.delay(config_.costs.syscall);
  const KResult<Name> at = co_await walk_to_parent(thread, path);
  if (!at) co_return std::unexpected(at.error());
  if (at->name.empty() || at->name == ".") co_return std::unexpected(Errno::eexist);
  Inode& directory = *at->directory;
  const sim::Mutex::Guard guard = co_await directory.lock.lock();
  const KResult<Inode*> existing = co_await lookup(thread, directory, at->name);
  if (existing) co_return std::unexpected(Errno::eexist);
  if (existing.error() != Errno::enoent) co_return std::unexpected(existing.error());
  if (directory.links >= kLinkMax &&
      (volume_->geometry().ro_compat & kRoCompatDirNlink) == 0) {
    co_return std::unexpected(Errno::emlink);
  }
  co_return co_await make_directory(thread, directory, at->name, mode);
}

Task<KResult<OpenFile>> FileSystem::open(Thread& thread, std::string_view path, OpenHow how) {
  co_await engine_.delay(config_.costs.syscall);
  const KResult<Name> at = co_await walk_to_parent(thread, path);
  if (!at) co_return std::unexpected(at.error());
  const bool must_be_directory = path.ends_with('/');
  if (must_be_directory && how.create) co_return std::unexpected(Errno::eisdir);
  Inode* inode = at->directory;
  Inode& directory = *at->directory;
  if (at->name.empty() || at->name == ".") {
    if (how.create && how.exclusive) co_return std::unexpected(Errno::eexist);
  } else {
    std::optional<sim::Mutex::Guard> guard;
    if (how.create) guard.emplace(co_await directory.lock.lock());
    const KResult<Inode*> existing = co_await lookup(thread, directory, at->name);
    if (existing) {
      if (how.create && how.exclusive) co_return std::unexpected(Errno::eexist);
      inode = *existing;
    } else if (existing.error() == Errno::enoent && how.create) {
      const KResult<Inode*> made = co_await create(thread, directory, at->name, how.mode);
      if (!made) co_return std::unexpected(made.error());
      inode = *made;
    } else {
      co_return std::unexpected(existing.error());
    }
  }
  if (must_be_directory && !inode->is_directory()) co_return std::unexpected(Errno::enotdir);
  if (inode->is_directory() && (how.writable || how.create)) {
    co_return std::unexpected(Errno::eisdir);
  }
  if (inode->is_regular()) {
    const KResult<void> sampled = co_await sample_mount_point(thread);
    if (!sampled) co_return std::unexpected(sampled.error());
  }
  if (how.writable) ++inode->writers;
  co_return OpenFile{inode, directory.ino, how.writable, how.sync, how.dsync};
}

Task<> FileSystem::close(Thread& /*thread*/, OpenFile& file) {
  co_await engine_.delay(config_.costs.syscall);
  Inode& inode = *file.inode;
  if (file.writable) {
    if (inode.writers == 1 && inode.reserved_blocks == 0) {
      const sim::Mutex::Guard guard = co_await inode.mapping_lock.lock();
      block_allocator_->discard_preallocations(inode);
    }
    --inode.writers;
  }
}

Task<KResult<void>> FileSystem::lstat(Thread& thread, std::string_view path) {
  co_await engine_.delay(config_.costs.syscall);
  const KResult<Inode*> inode = co_await walk(thread, path);
  if (!inode) co_return std::unexpected(inode.error());
  (*inode)->ctime_queried = true;
  co_return KResult<void>();
}

Task<KResult<void>> FileSystem::chmod(Thread& thread, std::string_view path, std::uint16_t mode) {
  co_await engine_.delay(config_.costs.syscall);
  const KResult<Inode*> found = co_await walk(thread, path);
  if (!found) co_return std::unexpected(found.error());
  Inode& inode = **found;
  const sim::Mutex::Guard guard = co_await inode.lock.lock();
  inode.mode = static_cast<std::uint16_t>((inode.mode & kModeTypeMask) | (mode & 07777));
  clock_.set_ctime(inode);
  co_return co_await inodes_->dirty(thread, inode);
}

}  // namespace jbdlab::ext4
