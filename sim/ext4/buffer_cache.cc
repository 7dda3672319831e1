#include "sim/ext4/buffer_cache.h"

#include <algorithm>

#include "base/check.h"
#include "sim/device/bio.h"
#include "sim/device/block_layer.h"

namespace jbdlab::ext4 {

BufferCache::BufferCache(sim::Engine& engine, sim::BlockLayer& blocks, std::uint32_t block_size,
                         std::uint64_t block_count, Duration write_cost)
    : engine_(engine),
      blocks_(blocks),
      block_size_(block_size),
      block_count_(block_count),
      write_cost_(write_cost),
      pages_((block_count + kPageBuffers - 1) / kPageBuffers),
      unlocked_(engine),
      writes_(engine) {}

BufferCache::~BufferCache() = default;

Buffer* BufferCache::find(FsBlock block) const noexcept {
  if (block.value() >= block_count_) return nullptr;
  const auto& page = pages_[block.value() / kPageBuffers];
  return page ? (*page)[block.value() % kPageBuffers].get() : nullptr;
}

Buffer& BufferCache::get(FsBlock block) {
  CHECK(block.value() < block_count_);
  auto& page = pages_[block.value() / kPageBuffers];
  if (!page) page = std::make_unique<Page>();
  auto& slot = (*page)[block.value() % kPageBuffers];
  if (!slot) {
    slot = std::make_unique<Buffer>(block);
    slot->data = BlockRef::zeros(block_size_);
  }
  return *slot;
}

BufferCache::Io* BufferCache::new_io(Buffer& buffer) {
  if (free_ios_.empty()) {
    ios_.push_back(std::make_unique<Io>());
    free_ios_.push_back(ios_.back().get());
  }
  Io* const io = free_ios_.back();
  free_ios_.pop_back();
  *io = {this, &buffer};
  return io;
}

void BufferCache::read_done(void* context) {
  Io* const io = static_cast<Io*>(context);
  io->buffer->uptodate = true;
  io->buffer->locked = false;
  io->cache->free_ios_.push_back(io);
  io->cache->unlocked_.wake_all();
}

void BufferCache::write_done(void* context) {
  Io* const io = static_cast<Io*>(context);
  io->buffer->locked = false;
  io->cache->free_ios_.push_back(io);
  io->cache->unlocked_.wake_all();
  io->cache->writes_.done();
}

void BufferCache::submit_read(Buffer& buffer, bool ahead) {
  buffer.locked = true;
  blocks_.submit(sim::Bio::read_block(buffer.block, block_size_, &buffer.data,
                                      {.meta = true, .rahead = ahead},
                                      {&BufferCache::read_done, new_io(buffer)}));
}

Task<Buffer*> BufferCache::read(FsBlock block) {
  Buffer& buffer = get(block);
  if (!buffer.uptodate) {
    if (!buffer.locked) submit_read(buffer, false);
    co_await wait_unlocked(buffer);
  }
  co_return &buffer;
}

void BufferCache::read_ahead(FsBlock first, std::uint32_t count) {
  for (std::uint64_t b = first.value(); b < first.value() + count && b < block_count_; ++b) {
    Buffer& buffer = get(FsBlock{b});
    if (!buffer.uptodate && !buffer.locked) submit_read(buffer, true);
  }
}

Task<> BufferCache::wait_unlocked(const Buffer& buffer) {
  while (buffer.locked) co_await unlocked_.wait();
}

void BufferCache::note_dirty(Buffer& buffer) {
  if (buffer.on_dirty_list) return;
  buffer.on_dirty_list = true;
  dirty_.push_back(&buffer);
}

// The dirty buffers, sorted; the list is empty then.
std::vector<Buffer*> BufferCache::take_dirty() {
  std::vector<Buffer*> taken;
  for (Buffer* const buffer : dirty_) {
    buffer->on_dirty_list = false;
    if (buffer->dirty) taken.push_back(buffer);
  }
  dirty_.clear();
  std::ranges::sort(taken, {}, [](const Buffer* b) { return b->block; });
  return taken;
}

std::optional<Time> BufferCache::oldest_dirty() const noexcept {
  std::optional<Time> oldest;
  for (const Buffer* const buffer : dirty_) {
    if (buffer->dirty && (!oldest || buffer->dirtied < *oldest)) oldest = buffer->dirtied;
  }
  return oldest;
}

template <class Sink>
void BufferCache::start_write(Sink& sink, Buffer& buffer, bool sync) {
  CHECK(buffer.dirty && !buffer.locked && buffer.transaction == nullptr);
  buffer.dirty = false;
  buffer.locked = true;
  writes_.add();
  sink.submit(sim::Bio::write_block(buffer.block, buffer.data, {.sync = sync, .meta = true},
                                    {&BufferCache::write_done, new_io(buffer)}));
}

Task<> BufferCache::write_dirty(bool wait) {
  const std::vector<Buffer*> buffers = take_dirty();
  {
    sim::Plug plug(blocks_);
    for (Buffer* const buffer : buffers) {
      if (buffer->locked) {
        plug.finish();
        co_await wait_unlocked(*buffer);
      }
      if (!buffer->dirty) continue;
      start_write(plug, *buffer, wait);
      co_await engine_.delay(write_cost_);  // at work, not asleep: the plug stays as it is
    }
  }
  if (wait) co_await writes_.wait();
}

void BufferCache::write_batch(const std::vector<Buffer*>& buffers) {
  sim::Plug plug(blocks_);
  for (Buffer* const buffer : buffers) {
    if (buffer->dirty && !buffer->locked) start_write(plug, *buffer, true);
  }
}

}  // namespace jbdlab::ext4
