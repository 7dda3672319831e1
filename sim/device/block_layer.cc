#include "sim/device/block_layer.h"

#include <algorithm>
#include <utility>

namespace jbdlab::sim {
namespace {

// Limits of a plug (BLK_MAX_REQUEST_COUNT and BLK_PLUG_FLUSH_SIZE of block/blk.h).
constexpr std::size_t kPlugRequests = 32;
constexpr std::uint32_t kPlugFlushSectors = 128 * 1024 / kSectorSize;

// How long data of flush sequences may hold up the next flush (FLUSH_PENDING_TIMEOUT).
constexpr Duration kFlushPendingTimeout = std::chrono::seconds(5);

}  // namespace

// Counts the pieces of a bio that was too large for one request; the last one completes the bio.
struct BlockLayer::Split {
  BlockLayer* layer = nullptr;
  std::uint32_t pieces = 0;
  Completion done{};
};

BlockLayer::BlockLayer(Engine& engine, Trace& trace, Device& device)
    : engine_(engine), trace_(trace), device_(device) {
  flush_request_.op = IoOp::flush;
  flush_request_.flags.preflush = true;  // printed as "FF"
  flush_request_.done = [](Request&, void* self) { static_cast<BlockLayer*>(self)->flush_done(); };
  flush_request_.done_context = this;
}

BlockLayer::~BlockLayer() = default;

Task<void> BlockLayer::submit_and_wait(Bio bio) {
  CHECK(bio.done.function == nullptr);
  Latch latch(engine_);
  bio.done = completes(latch);
  submit(std::move(bio));
  if (latch.pending() > 0) co_await latch.wait();
}

Task<void> BlockLayer::flush() { return submit_and_wait(Bio::flush({})); }

void BlockLayer::submit_to(Plug* plug, Bio bio) {
  if (!device_.info().volatile_cache && (bio.flags.preflush || bio.flags.fua)) {
    bio.flags.preflush = false;
    bio.flags.fua = false;
    if (bio.sectors == 0) {
      bio.done();
      return;
    }
  }
  trace_.bio_queue(bio);
  if (bio.op == IoOp::write) sectors_written_ += bio.sectors;
  const DeviceInfo& info = device_.info();
  const std::uint32_t chunk_sectors = device_.chunk_size() / kSectorSize;
  if (bio.op != IoOp::discard && bio.sectors > chunk_sectors) {
    const std::uint32_t by_segments = static_cast<std::uint32_t>(
        std::uint64_t{info.max_segments} * (bio.sectors / chunk_sectors) / segments_of(bio));
    const std::uint32_t limit =
        std::max(1U, std::min(info.max_sectors / chunk_sectors, by_segments));
    if (bio.sectors > limit * chunk_sectors) {
      submit_split(plug, std::move(bio), limit);
      return;
    }
  }
  submit_piece(plug, std::move(bio));
}

BlockLayer::Split& BlockLayer::new_split(std::uint32_t pieces, Completion done) {
  if (free_splits_.empty()) {
    splits_.push_back(std::make_unique<Split>());
    free_splits_.push_back(splits_.back().get());
  }
  Split& split = *free_splits_.back();
  free_splits_.pop_back();
  split = {this, pieces, done};
  return split;
}

void BlockLayer::submit_split(Plug* plug, Bio bio, std::uint32_t chunks_per_piece) {
  const std::uint32_t chunk_sectors = device_.chunk_size() / kSectorSize;
  const std::uint32_t piece_sectors = chunks_per_piece * chunk_sectors;
  CHECK(bio.sector.value() % chunk_sectors == 0 && bio.sectors % chunk_sectors == 0);
  Split& split = new_split((bio.sectors + piece_sectors - 1) / piece_sectors, bio.done);
  const auto piece_done = [](void* context) {
    auto& self = *static_cast<Split*>(context);
    if (--self.pieces > 0) return;
    self.layer->free_splits_.push_back(&self);
    const Completion done = self.done;
    done();
  };
  const std::uint32_t segments = bio.segments;
  for (std::uint32_t at = 0; at < bio.sectors; at += piece_sectors) {
    Bio piece{.op = bio.op, .flags = bio.flags};
    piece.sector = Sector{bio.sector.value() + at};
    piece.sectors = std::min(piece_sectors, bio.sectors - at);
    if (segments != 0) {
      piece.segments = static_cast<std::uint32_t>(
          (std::uint64_t{segments} * piece.sectors + bio.sectors - 1) / bio.sectors);
    }
    const std::uint32_t first = at / chunk_sectors;
    const std::uint32_t end = first + piece.sectors / chunk_sectors;
    for (std::uint32_t i = first; i < end && !bio.blocks.empty(); ++i) {
      piece.blocks.push_back(std::move(bio.blocks[i]));
    }
    if (bio.into != nullptr) piece.into = bio.into + first;
    piece.done = {piece_done, &split};
    submit_piece(plug, std::move(piece));
  }
}

std::uint32_t BlockLayer::segments_of(const Bio& bio) const noexcept {
  return bio.segments != 0
             ? bio.segments
             : std::max<std::uint32_t>(1, bio.sectors / (device_.chunk_size() / kSectorSize));
}

void BlockLayer::submit_piece(Plug* plug, Bio bio) {
  const bool flushes = bio.flags.preflush || bio.flags.fua;
  if (plug != nullptr && !plug->requests_.empty() && !flushes &&
      try_merge(*plug->requests_.back(), bio)) {
    return;
  }
  Request& request = new_request(std::move(bio));
  if (flushes && begin_flush_sequence(request)) return;
  if (plug == nullptr) {
    issue(request);
    return;
  }
  if (plug->requests_.size() >= kPlugRequests ||
      (!plug->requests_.empty() && plug->requests_.back()->sectors >= kPlugFlushSectors)) {
    plug->finish();
  }
  plug->requests_.push_back(&request);
}

// Makes `bio` part of `last` if it lies right behind or right before it (blk_attempt_bio_merge).
// The flags of the first bio stay those of the request.
bool BlockLayer::try_merge(Request& last, Bio& bio) const {
  const bool mergeable = last.op == bio.op && !last.flags.preflush && !last.flags.fua &&
                         last.stage == Request::Stage::none;
  const bool fits = last.sectors + bio.sectors <= device_.info().max_sectors &&
                    last.segments + segments_of(bio) <= device_.info().max_segments;
  if (!mergeable || (!fits && bio.op != IoOp::discard)) return false;
  const bool behind = last.end_sector() == bio.sector.value();
  const bool before = bio.end_sector() == last.sector.value();
  if (!behind && !before) return false;
  last.sectors += bio.sectors;
  last.segments += segments_of(bio);
  if (behind) {
    last.bios.push_back(std::move(bio));
  } else {
    last.sector = bio.sector;
    last.bios.insert(last.bios.begin(), std::move(bio));
  }
  return true;
}

Request& BlockLayer::new_request(Bio bio) {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<Request>());
    free_.push_back(pool_.back().get());
    free_.back()->done = [](Request& request, void* self) {
      static_cast<BlockLayer*>(self)->request_done(request);
    };
    free_.back()->done_context = this;
  }
  Request& request = *free_.back();
  free_.pop_back();
  request.op = bio.op;
  request.flags = bio.flags;
  request.sector = bio.sector;
  request.sectors = bio.sectors;
  request.segments = segments_of(bio);
  request.stage = Request::Stage::none;
  request.bios.push_back(std::move(bio));
  ++in_flight_;
  return request;
}

// True if the flush machinery has taken the request; false if it is issued like any other
// (blk_insert_flush).
bool BlockLayer::begin_flush_sequence(Request& request) {
  const bool preflush = request.flags.preflush;
  const bool has_data = request.sectors > 0;
  request.flags.preflush = false;
  request.flags.sync = true;
  request.then_data = has_data;
  request.then_postflush = request.flags.fua && !device_.info().fua;
  if (!device_.info().fua) request.flags.fua = false;
  if (!preflush) {
    if (!request.then_postflush) return false;  // FUA that the device does itself
    request.stage = Request::Stage::data;
    ++flush_data_in_flight_;
    return false;
  }
  request.stage = Request::Stage::preflush;
  if (pending_.empty()) pending_since_ = engine_.now();
  pending_.push_back(&request);
  kick_flush();
  return true;
}

// The present step of a flush sequence is done (blk_flush_complete_seq).
void BlockLayer::next_flush_step(Request& request) {
  using enum Request::Stage;
  if (request.stage == preflush && request.then_data) {
    request.stage = data;
    ++flush_data_in_flight_;
    issue_requeued(request);
  } else if (request.stage != postflush && request.then_postflush) {
    request.stage = postflush;
    if (pending_.empty()) pending_since_ = engine_.now();
    pending_.push_back(&request);
  } else {
    finish(request);
  }
  kick_flush();
}

// Issues a flush if somebody waits for one, none is in flight, and no data of a sequence is
// (blk_kick_flush).
void BlockLayer::kick_flush() {
  if (flush_in_flight_ || pending_.empty()) return;
  if (flush_data_in_flight_ > 0 && engine_.now() < pending_since_ + kFlushPendingTimeout) return;
  flush_in_flight_ = true;
  running_.swap(pending_);
  issue_requeued(flush_request_);
}

void BlockLayer::issue(Request& request) {
  trace_.rq_issue(request);
  device_.submit(request);
}

// By way of a kworker (blk_mq_kick_requeue_list). Nobody ends the run of a request on its way: the
// event is dropped with the engine.
void BlockLayer::issue_requeued(Request& request) {
  const auto issue_now = [](void* context) {
    auto& waiting = *static_cast<Request*>(context);
    static_cast<BlockLayer*>(waiting.done_context)->issue(waiting);
  };
  engine_.call_at(engine_.now() + device_.info().requeue_delay, issue_now, &request);
}

void BlockLayer::request_done(Request& request) {
  trace_.rq_complete(request);
  if (request.stage == Request::Stage::none) {
    finish(request);
    return;
  }
  CHECK(request.stage == Request::Stage::data);
  --flush_data_in_flight_;
  next_flush_step(request);
}

void BlockLayer::flush_done() {
  trace_.rq_complete(flush_request_);
  flush_in_flight_ = false;
  flushed_.swap(running_);
  for (Request* request : flushed_) next_flush_step(*request);
  flushed_.clear();
}

void BlockLayer::finish(Request& request) {
  --in_flight_;
  for (const Bio& bio : request.bios) bio.done();
  request.bios.clear();
  free_.push_back(&request);
}

void BlockLayer::Plug::finish() {
  for (Request* request : requests_) layer_.issue(*request);
  requests_.clear();
}

}  // namespace jbdlab::sim
