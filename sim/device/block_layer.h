#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "sim/device/bio.h"
#include "sim/device/device.h"
#include "sim/engine/engine.h"
#include "sim/engine/task.h"
#include "sim/trace.h"

namespace jbdlab::sim {

// The block layer with the scheduler "none", as far as it decides what reaches the device: merging
// in a plug, splitting at the device's limits, and the flush machinery. Counts and traces bios as
// they are submitted and requests as they are issued. Source: block/blk-core.c, blk-mq.c,
// blk-merge.c, blk-flush.c, kernel 6.18. Simplified: a request never waits for a tag.
//
// Flushes. On a device with a volatile cache, PREFLUSH is a flush before the data, and FUA, where
// the device has none, a flush after it. At most one flush is in flight: flushes that are asked for
// meanwhile share the next one, which waits while data of a flush sequence is in flight (for 5 s at
// most). On a device without a volatile cache both flags are dropped before anything is counted,
// and a flush without data completes at once, uncounted.
class BlockLayer {
 public:
  class Plug;

  BlockLayer(Engine& engine, Trace& trace, Device& device);
  ~BlockLayer();
  BlockLayer(const BlockLayer&) = delete;
  BlockLayer& operator=(const BlockLayer&) = delete;

  const Device& device() const noexcept { return device_; }

  // Without a plug: a request of its own, issued now. Completion may come before submit() returns
  // only where there is nothing to do.
  void submit(Bio bio) { submit_to(nullptr, std::move(bio)); }

  // Submits and waits.
  Task<void> submit_and_wait(Bio bio);
  // blkdev_issue_flush().
  Task<void> flush();

  // What has been submitted for writing since the start, in sectors.
  std::uint64_t sectors_written() const noexcept { return sectors_written_; }
  // Requests issued and not yet complete, those of flush sequences counted once.
  std::uint64_t in_flight() const noexcept { return in_flight_; }

 private:
  struct Split;
  void submit_to(Plug* plug, Bio bio);
  void submit_piece(Plug* plug, Bio bio);
  void submit_split(Plug* plug, Bio bio, std::uint32_t chunks_per_piece);
  Split& new_split(std::uint32_t pieces, Completion done);
  std::uint32_t segments_of(const Bio& bio) const noexcept;
  bool try_merge(Request& last, Bio& bio) const;
  Request& new_request(Bio bio);
  bool begin_flush_sequence(Request& request);
  void next_flush_step(Request& request);
  void kick_flush();
  void issue(Request& request);
  void issue_requeued(Request& request);
  void request_done(Request& request);
  void flush_done();
  void finish(Request& request);

  Engine& engine_;
  Trace& trace_;
  Device& device_;
  std::vector<std::unique_ptr<Request>> pool_;
  std::vector<Request*> free_;
  std::vector<std::unique_ptr<Split>> splits_;
  std::vector<Split*> free_splits_;
  std::uint64_t in_flight_ = 0;
  std::uint64_t sectors_written_ = 0;

  // The flush queue (struct blk_flush_queue).
  Request flush_request_;
  bool flush_in_flight_ = false;
  std::uint32_t flush_data_in_flight_ = 0;
  Time pending_since_{};
  std::vector<Request*> pending_;  // wait for the next flush
  std::vector<Request*> running_;  // wait for the flush in flight
  std::vector<Request*> flushed_;  // those of the flush just completed
};

// Collects what one process submits until it is flushed (struct blk_plug): a bio that continues the
// last request, or that the last request continues, becomes part of it. Issues what it holds when
// 32 requests are in it, or when a new one comes behind one of 128 KiB or more.
//
// A process that goes to sleep flushes its plug: call finish() before co_await. The plug can be
// used again afterwards.
class BlockLayer::Plug {
 public:
  explicit Plug(BlockLayer& layer) noexcept : layer_(layer) {}
  Plug(const Plug&) = delete;
  Plug& operator=(const Plug&) = delete;
  ~Plug() { finish(); }

  void submit(Bio bio) { layer_.submit_to(this, std::move(bio)); }
  void finish();

 private:
  friend class BlockLayer;
  BlockLayer& layer_;
  std::vector<Request*> requests_;
};

using Plug = BlockLayer::Plug;

}  // namespace jbdlab::sim
