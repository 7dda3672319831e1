#include "sim/device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace jbdlab::sim {

// A completed write that no flush has covered yet.
struct Device::VolatileWrite {
  std::uint64_t completion;
  std::uint64_t first_chunk;
  std::vector<BlockRef> blocks;  // an empty one is superseded: a FUA write of the block came later
};

namespace {

constexpr std::uint64_t kOneOf = 3;  // whole, lost, torn: a random crash image's cases

// Chunk numbers and contents of what `request` writes, in order.
template <class Visit>
void for_each_written(const Request& request, std::uint32_t chunk_size, Visit&& visit) {
  const std::uint32_t chunk_sectors = chunk_size / kSectorSize;
  for (const Bio& bio : request.bios) {
    const std::uint64_t first = bio.sector.value() / chunk_sectors;
    if (bio.op == IoOp::discard) {
      for (std::uint64_t i = 0; i < bio.sectors / chunk_sectors; ++i) {
        visit(first + i, BlockRef::zeros(chunk_size));
      }
    } else {
      for (std::size_t i = 0; i < bio.blocks.size(); ++i) visit(first + i, bio.blocks[i]);
    }
  }
}

bool changes_contents(const Request& request) noexcept {
  return request.op == IoOp::write || request.op == IoOp::discard;
}

// Writes those sectors of `contents` that `keep_sector()` is true for.
template <class KeepSector>
void write_torn(BlockStore& store, std::uint64_t chunk, const BlockRef& contents,
                KeepSector&& keep_sector) {
  BlockRef mixed = store.read(chunk);
  const MutableByteSpan to = mixed.mutate();
  const BlockRef source = contents;
  const ByteSpan from = source.bytes();
  for (std::size_t at = 0; at < to.size(); at += kSectorSize) {
    if (keep_sector()) std::ranges::copy(from.subspan(at, kSectorSize), to.subspan(at).begin());
  }
  store.write(chunk, std::move(mixed));
}

}  // namespace

Device::Device(Engine& engine, DeviceInfo info, std::unique_ptr<CostModel> cost,
               BlockStore contents, const DeviceOptions& options)
    : engine_(engine),
      info_(std::move(info)),
      cost_(std::move(cost)),
      contents_(std::move(contents)),
      options_(options) {
  if (options_.track_durability) durable_ = contents_;
}

Device::~Device() = default;

void Device::submit(Request& request) {
  const std::uint32_t chunk_sectors = chunk_size() / kSectorSize;
  CHECK(request.end_sector() <= sector_count());
  if (changes_contents(request)) {
    CHECK(request.sector.value() % chunk_sectors == 0 && request.sectors % chunk_sectors == 0);
  }
  request.device = this;
  request.arrival = ++arrivals_;
  request.arrived = engine_.now();
  request.covers = completed_;
  if (options_.keep_log) {
    log_.push_back({.op = request.op,
                    .fua = request.flags.fua,
                    .sector = request.sector,
                    .sectors = request.sectors,
                    .arrival = request.arrival,
                    .flush_epoch = flushes_,
                    .arrived = request.arrived});
  }
  if (durable_ && changes_contents(request)) in_flight_.push_back(&request);
  const auto complete_now = [](void* context) {
    auto& completed = *static_cast<Request*>(context);
    completed.device->complete(completed);
  };
  engine_.call_at(cost_->completion(request, engine_.now()), complete_now, &request);
}

void Device::complete(Request& request) {
  ++completed_;
  if (request.op == IoOp::flush) ++flushes_;
  if (options_.keep_log) {
    RequestRecord& record = log_[request.arrival - 1];
    record.completion = completed_;
    record.completed = engine_.now();
  }
  apply(request);
  if (durable_) track_completed(request);
  if (completed_ == notify_count_) *notify_flag_ = true;
  request.done(request, request.done_context);
}

void Device::apply(const Request& request) {
  if (request.op == IoOp::read) {
    const std::uint32_t chunk_sectors = chunk_size() / kSectorSize;
    for (const Bio& bio : request.bios) {
      if (bio.into == nullptr) continue;
      const std::uint64_t first = bio.sector.value() / chunk_sectors;
      const std::uint64_t last = (bio.end_sector() - 1) / chunk_sectors;
      for (std::uint64_t i = first; i <= last; ++i) bio.into[i - first] = contents_.read(i);
    }
  } else {
    for_each_written(request, chunk_size(), [&](std::uint64_t chunk, const BlockRef& contents) {
      contents_.write(chunk, contents);
    });
  }
}

void Device::track_completed(const Request& request) {
  if (request.op == IoOp::flush) make_durable(request.covers);
  if (!changes_contents(request)) return;
  in_flight_.erase(std::ranges::find(in_flight_, &request));
  if (info_.volatile_cache && !request.flags.fua) {
    VolatileWrite write{completed_, request.sector.value() * kSectorSize / chunk_size(), {}};
    for_each_written(request, chunk_size(), [&](std::uint64_t, const BlockRef& contents) {
      write.blocks.push_back(contents);
    });
    volatile_.push_back(std::move(write));
    return;
  }
  for_each_written(request, chunk_size(), [&](std::uint64_t chunk, const BlockRef& contents) {
    durable_->write(chunk, contents);
    // What the cache still held of this block is older.
    for (VolatileWrite& older : volatile_) {
      if (chunk >= older.first_chunk && chunk - older.first_chunk < older.blocks.size()) {
        older.blocks[chunk - older.first_chunk] = BlockRef();
      }
    }
  });
}

// Writes completed up to `last_completion` can no longer be lost.
void Device::make_durable(std::uint64_t last_completion) {
  const auto end =
      std::ranges::upper_bound(volatile_, last_completion, {}, &VolatileWrite::completion);
  for (auto write = volatile_.begin(); write != end; ++write) {
    for (std::size_t i = 0; i < write->blocks.size(); ++i) {
      if (write->blocks[i]) durable_->write(write->first_chunk + i, write->blocks[i]);
    }
  }
  volatile_.erase(volatile_.begin(), end);
}

BlockStore Device::crash_image(Keep keep, std::uint64_t seed) const {
  if (keep == Keep::completed) return contents_;
  CHECK(durable_.has_value());
  BlockStore image = *durable_;
  if (keep == Keep::durable) return image;

  Random random = Random(seed).fork("crash image");
  const auto coin = [&] { return random.chance(1, 2); };
  // One write, the same fate for all of its blocks: that makes whole and lost writes likely enough
  // to meet, however large the write.
  enum class Fate : std::uint8_t { whole, lost, torn };
  const auto draw = [&] { return static_cast<Fate>(random.below(kOneOf)); };
  const auto keep_part = [&](Fate fate, std::uint64_t chunk, const BlockRef& contents) {
    if (!contents || fate == Fate::lost) return;
    if (fate == Fate::whole) {
      image.write(chunk, contents);
    } else {
      write_torn(image, chunk, contents, coin);
    }
  };
  for (const VolatileWrite& write : volatile_) {
    const Fate fate = draw();
    for (std::size_t i = 0; i < write.blocks.size(); ++i) {
      keep_part(fate, write.first_chunk + i, write.blocks[i]);
    }
  }
  for (const Request* request : in_flight_) {
    const Fate fate = draw();
    for_each_written(*request, chunk_size(), [&](std::uint64_t chunk, const BlockRef& contents) {
      keep_part(fate, chunk, contents);
    });
  }
  return image;
}

Result<std::unique_ptr<Device>> make_device(std::string_view name, Engine& engine,
                                            BlockStore contents, const DeviceOptions& options) {
  std::string names;
  for (const DeviceKind& kind : device_kinds()) {
    DeviceInfo info = kind.info();
    if (info.name == name) {
      auto cost = kind.cost(Random(options.seed).fork("device"));
      return std::make_unique<Device>(engine, std::move(info), std::move(cost), std::move(contents),
                                      options);
    }
    names += names.empty() ? "" : ", ";
    names += info.name;
  }
  return fail(Errc::usage, fmt::format("no device is called '{}'; there are: {}", name, names));
}

}  // namespace jbdlab::sim
