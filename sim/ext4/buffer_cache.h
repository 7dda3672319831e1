#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
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
// Source: fs/buffer.c; the writes are those of the block device's mapping (block_write_full_folio).
class BufferCache {
 public:
  // `write_cost`: processor time for each buffer that write_dirty() takes up.
  BufferCache(sim::Engine& engine, sim::BlockLayer& blocks, std::uint32_t block_size,
              std::uint64_t block_count, Duration write_cost = {});
  ~BufferCache();
  BufferCache(const BufferCache&) = delete;
  BufferCache& operator=(const BufferCache&) = delete;

  // The buffer of `block`, whatever its contents (sb_getblk). Creates it, not up to date.
  // Precondition: block < block_count (checked: a pointer on the disk is checked before it is
  // used).
  Buffer& get(FsBlock block);
  // The same, read from the device unless up to date (sb_bread); waits for the read.
  Task<Buffer*> read(FsBlock block);
  // Starts reads of those of [first, first + count) that are not in memory, and does not wait
  // (REQ_RAHEAD).
  void read_ahead(FsBlock first, std::uint32_t count);
  // Null if nobody has asked for it yet.
  Buffer* find(FsBlock block) const noexcept;

  // Waits while a read or a write home of `buffer` is in flight (wait_on_buffer).
  Task<> wait_unlocked(const Buffer& buffer);

  // Writes home all dirty buffers, in block order, each as one bio, as a sync of the block device
  // does (sync_blockdev). With `wait`: as REQ_SYNC, and returns when all are written, those of
  // others too. Buffers that a transaction holds are not dirty.
  Task<> write_dirty(bool wait);
  // Since when the buffer that has been dirty for the longest has been so; nothing: none is dirty.
  std::optional<Time> oldest_dirty() const noexcept;
  // Starts writes of `buffers` (dirty ones, in this order) in one plug with REQ_SYNC, and does not
  // wait: a batch of a checkpoint.
  void write_batch(const std::vector<Buffer*>& buffers);

  // Notes that `buffer` has become dirty (its flag is set): it will be looked for.
  void note_dirty(Buffer& buffer);

  std::uint32_t block_size() const noexcept { return block_size_; }
  std::uint64_t block_count() const noexcept { return block_count_; }

 private:
  static constexpr std::size_t kPageBuffers = 256;
  using Page = std::array<std::unique_ptr<Buffer>, kPageBuffers>;
  struct Io {
    BufferCache* cache;
    Buffer* buffer;
  };

  void submit_read(Buffer& buffer, bool ahead);
  Io* new_io(Buffer& buffer);
  static void read_done(void* io);
  static void write_done(void* io);
  template <class Sink>
  void start_write(Sink& sink, Buffer& buffer, bool sync);
  std::vector<Buffer*> take_dirty();

  sim::Engine& engine_;
  sim::BlockLayer& blocks_;
  const std::uint32_t block_size_;
  const std::uint64_t block_count_;
  const Duration write_cost_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<Buffer*> dirty_;  // those with on_dirty_list, in the order of becoming dirty
  std::vector<std::unique_ptr<Io>> ios_;
  std::vector<Io*> free_ios_;
  sim::WaitQueue unlocked_;
  sim::Latch writes_;
};

}  // namespace jbdlab::ext4
