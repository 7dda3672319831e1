#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/device/block_layer.h"
#include "sim/engine/random.h"
#include "sim/ext4/alloc/bitmaps.h"
#include "sim/ext4/alloc/block_allocator.h"
#include "sim/ext4/alloc/inode_allocator.h"
#include "sim/ext4/cpu_costs.h"
#include "sim/ext4/dir/directories.h"
#include "sim/ext4/extents/extent_map.h"
#include "sim/ext4/inode_table.h"
#include "sim/ext4/journal_driver.h"
#include "sim/ext4/kernel_clock.h"
#include "sim/ext4/mount_options.h"
#include "sim/ext4/volume.h"
#include "sim/ext4/writeback.h"
#include "sim/trace.h"

namespace jbdlab::ext4 {

// An open file (struct file). A thread's own; files outlive every call on them.
struct OpenFile {
  Inode* inode = nullptr;
  Ino parent;             // directory that it was opened through, for traces
  bool writable = true;
  bool sync = false;      // O_SYNC: each write ends in an fsync of its range
  bool dsync = false;     // O_DSYNC: in an fdatasync of it
};

struct OpenHow {
  bool create = false;
  bool exclusive = false;  // with create: fails if it exists
  bool writable = true;
  bool sync = false, dsync = false;
  std::uint16_t mode = 0644;
};

// What a write puts there: the pattern of the op language for `seed`, or that with the journal's
// magic at every 1024 bytes from the write's start.
struct WriteData {
  std::uint32_t seed = 0;
  bool magic = false;
};

// A mounted ext4 and the system calls on it, as coroutines that read like the kernel's paths
// (fs/ext4/{super,namei,file,fsync,inode}.c, fs/sync.c, Linux 6.18). It edits the real blocks of
// the image on the device: what lies there is an ext4 file system at every moment.
//
// Each call runs as `thread`, whose CPU decides where blocks go. Paths are relative to the root.
class FileSystem final : private JournalDriver::Host {
 public:
  struct Config {
    MountOptions mount;
    jbd2::JournalOptions journal;  // commit interval and barrier come from `mount`
    CpuCosts costs;
    unsigned cpus = 2;
    std::uint64_t seed = 0;
    std::string mount_point = "/mnt";  // ends up in the superblock
  };

  // `geometry` was read from the device's superblock.
  FileSystem(sim::Engine& engine, sim::Trace& trace, sim::BlockLayer& blocks,
             const Geometry& geometry, Config config);
  ~FileSystem() override;

  // Errors: unsupported (the log needs recovery, an external or block-mapped journal, no journal),
  // invalid (damage, with what is wrong).
  Task<Result<void>> mount();
  Task<> unmount();

  Task<KResult<OpenFile>> open(Thread& thread, std::string_view path, OpenHow how);
  Task<> close(Thread& thread, OpenFile& file);
  // Size by fstat(2), which makes the next change of the file get a fine time stamp.
  Task<std::uint64_t> fstat_size(Thread& thread, OpenFile& file);
  // `append`: at the end, wherever that is (RWF_APPEND). len > 0.
  Task<KResult<void>> write(Thread& thread, OpenFile& file, std::uint64_t offset,
                            std::uint64_t len, WriteData data, bool append);
  Task<KResult<void>> fsync(Thread& thread, OpenFile& file, bool datasync);
  Task<KResult<void>> mkdir(Thread& thread, std::string_view path, std::uint16_t mode);
  Task<KResult<void>> chmod(Thread& thread, std::string_view path, std::uint16_t mode);
  Task<KResult<void>> lstat(Thread& thread, std::string_view path);
  Task<KResult<void>> syncfs(Thread& thread);
  Task<KResult<void>> sync(Thread& thread);

  const JournalDriver& journal() const noexcept { return *journal_; }  // once mounted

 private:
  // The end of a path: its directory and last name.
  struct Name {
    Inode* directory;
    std::string name;
  };

  // mount.cc
  Task<Result<jbd2::LogSuperblock>> load_journal();
  Task<KResult<void>> read_journal_place(ByteSpan node, std::uint32_t depth,
                                         std::vector<JournalPlace::Run>& runs);
  Task<> commit_super(bool meta);
  void stamp_super(std::size_t low, std::size_t high);

  // namei.cc
  Task<KResult<Inode*>> walk(Thread& thread, std::string_view path);
  Task<KResult<Name>> walk_to_parent(Thread& thread, std::string_view path);
  Task<KResult<Inode*>> lookup(Thread& thread, Inode& directory, const std::string& name);
  Task<KResult<Inode*>> create(Thread& thread, Inode& directory, std::string name,
                               std::uint16_t mode);
  Task<KResult<Inode*>> new_inode(Thread& thread, Inode& directory, const std::string& name,
                                  std::uint16_t mode);
  Task<> drop_new_inode(Thread& thread, Inode& inode);
  Task<KResult<void>> make_directory(Thread& thread, Inode& directory, std::string name,
                                     std::uint16_t mode);
  Task<KResult<void>> sample_mount_point(Thread& thread);

  // write.cc
  Task<KResult<void>> update_times(Thread& thread, Inode& inode);
  struct PageWrite {  // what a part of a write needs to know of the whole
    WriteData data;
    std::uint64_t start = 0, end = 0;  // bytes of the file
    std::uint64_t folio_page = 0;      // of the folio that the part makes, or goes on with
    std::uint64_t folio_pages = 0;
  };
  Task<KResult<void>> write_page(Thread& thread, Inode& inode, std::uint64_t offset,
                                 std::uint32_t len, PageWrite write);
  Task<KResult<void>> prepare_block(Inode& inode, LogicalBlock block, bool whole,
                                    const PageWrite& write);
  Task<KResult<void>> reserve_block(Inode& inode);
  Task<KResult<void>> write_end(Thread& thread, Inode& inode, std::uint64_t offset,
                                std::uint32_t len);
  Task<KResult<void>> zero_partial_blocks(Thread& thread, Inode& inode, std::uint64_t first,
                                          std::uint64_t end);
  Task<KResult<void>> zero_in_block(Thread& thread, Inode& inode, std::uint64_t first,
                                    std::uint64_t end);
  Task<BlockRef> read_data(FsBlock block);

  // sync.cc
  Task<KResult<void>> sync_file(Thread& thread, Inode& inode, Ino parent, Writeback::Range range,
                                bool datasync);
  Task<> sync_fs(bool wait);
  Task<KResult<void>> sync_filesystem();

  // JournalDriver::Host
  void transaction_committed(Tid tid) override;
  Task<> submit_ordered(jbd2::OrderedData data) override;
  Task<> wait_ordered(jbd2::OrderedData data) override;

  sim::Engine& engine_;
  sim::Trace& trace_;
  sim::BlockLayer& blocks_;
  const Config config_;
  KernelClock clock_;
  sim::Random random_;  // generations of inodes
  std::unique_ptr<BufferCache> buffers_;
  std::unique_ptr<Volume> volume_;
  std::optional<JournalPlace> place_;
  std::unique_ptr<JournalDriver> journal_;
  std::unique_ptr<InodeTable> inodes_;
  std::unique_ptr<Bitmaps> bitmaps_;
  std::unique_ptr<BlockAllocator> block_allocator_;
  std::unique_ptr<InodeAllocator> inode_allocator_;
  std::unique_ptr<ExtentMap> extents_;
  std::unique_ptr<Directories> directories_;
  std::unique_ptr<Writeback> writeback_;
  // The dentry cache: of each directory, names that exist.
  std::map<Ino, std::map<std::string, Ino, std::less<>>> names_;
  bool mount_point_sampled_ = false;
  std::uint64_t kbytes_before_ = 0;  // s_kbytes_written at mount
};

}  // namespace jbdlab::ext4
