#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "sim/ext4/inode.h"
#include "sim/ext4/journal_driver.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// Reads the fields of an inode from its `inode_size` bytes on the disk, and writes them there. A
// write keeps what is not modelled (fields that this struct has no member for), and ends with the
// checksum. Layout: struct ext4_inode, Documentation/filesystems/ext4/inodes.rst.
// Errors of read_inode: euclean (bad checksum, an extra size that does not fit).
KResult<void> read_inode(const Geometry& geometry, ByteSpan raw, Inode& inode);
// `fresh`: the bytes belong to nobody yet, and are cleared first. True if i_size changed on disk.
bool write_inode(const Geometry& geometry, MutableByteSpan raw, const Inode& inode, bool fresh);

// The inodes in memory, and the table they come from and go to.
class InodeTable final : public InodeStore {
 public:
  InodeTable(sim::Engine& engine, Volume& volume, JournalDriver& journal);
  ~InodeTable() override;

  Task<KResult<Inode*>> get(Thread& thread, Ino ino) override;
  Task<KResult<void>> mark_dirty(Thread& thread, Inode& inode) override;
  Task<KResult<void>> dirty(Thread& thread, Inode& inode) override;

  // A new inode, just allocated: in memory only, until mark_dirty().
  Inode& create(Ino ino);
  Inode* find(Ino ino) noexcept;
  // Changes of the open handle matter to an fsync of the inode, and to fdatasync, too, if
  // `datasync` (ext4_update_inode_fsync_trans).
  void touch(const Thread& thread, Inode& inode, bool datasync);
  // Inodes with changed data or times that the flusher has not seen to yet, in the order in which
  // they became so (b_dirty of the bdi's writeback). An fsync does not take them off.
  void note_dirty(Inode& inode);
  void note_clean(Inode& inode);
  bool any_dirty() const noexcept { return !dirty_.empty(); }
  std::vector<Inode*> dirty_inodes(Time since) const;  // those that became so at `since` or before

  // Gives up what is in memory of an inode that was never linked.
  void forget(Ino ino);

 private:
  struct Place {
    FsBlock block;
    std::size_t offset;
  };
  static constexpr std::size_t kPageInodes = 128;
  using Page = std::array<std::unique_ptr<Inode>, kPageInodes>;

  Place place_of(Ino ino);
  std::unique_ptr<Inode>& slot(Ino ino);
  Task<Buffer*> table_block(Inode& inode);

  sim::Engine& engine_;
  Volume& volume_;
  JournalDriver& journal_;
  std::vector<std::unique_ptr<Page>> pages_;  // by inode number
  std::map<std::uint64_t, Inode*> dirty_;  // by dirty_order
  std::uint64_t last_dirty_order_ = 0;
};

}  // namespace jbdlab::ext4
