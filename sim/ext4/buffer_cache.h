#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "jbd2/machine/buffer_head.h"
#include "sim/engine/sync.h"
#include "sim/ext4/types.h"

namespace jbdlab::sim {
class BlockLayer;
}

namespace jbdlab::ext4 {

using Buffer = jbd2::BufferHead;

// The block device's cache: every metadata block that has been read or made, with its contents.
// Buffers live until the file system is unmounted, so references to them stay valid.
class BufferCache {
 public:
  BufferCache(sim::Engine& engine, sim::BlockLayer& blocks, std::uint32_t block_size,
              std::uint64_t block_count);
  ~BufferCache();

  // The buffer of `block`, whatever its contents (sb_getblk). Creates it, not up to date.
  Buffer& get(FsBlock block);
  // The same, read from the device unless up to date (sb_bread); waits for the read.
  // Precondition: block < block_count (checked: a pointer on the disk is checked before it is used).
  Task<Buffer*> read(FsBlock block);
  // Starts reads of those of [first, first + count) that are not in memory, and does not wait
  // (REQ_RAHEAD).
  void read_ahead(FsBlock first, std::uint32_t count);
  // Null if nobody has asked for it yet.
  Buffer* find(FsBlock block) noexcept;

  // Waits while a read or a write home of `buffer` is in flight (wait_on_buffer).
  Task<> wait_unlocked(const Buffer& buffer);

  // Writes home all dirty buffers, in block order, each as one bio, as a sync of the block device
  // does (sync_blockdev). `wait`: with REQ_SYNC, and returns when all are written. Buffers that a
  // transaction holds are not dirty.
  Task<> write_dirty(bool wait);
  // Writes `buffers` (dirty ones; ll_rw_block order as given) home in one plug with REQ_SYNC, and
  // returns when they are written: a batch of a checkpoint.
  Task<> write_batch(std::vector<Buffer*> buffers);
  // Waits for every write in flight.
  Task<> wait_for_writes();

  void mark_dirty(Buffer& buffer, Time now);
  std::uint32_t block_size() const noexcept { return block_size_; }
  std::uint64_t block_count() const noexcept { return block_count_; }

 private:
  struct Page;
  struct Io;
  void submit_write(Buffer& buffer, bool sync, struct PlugRef plug);

  sim::Engine& engine_;
  sim::BlockLayer& blocks_;
  const std::uint32_t block_size_;
  const std::uint64_t block_count_;
};

}  // namespace jbdlab::ext4
