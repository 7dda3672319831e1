#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sim/device/bio.h"
#include "sim/device/store.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"

// The emulated device: contents, cost and durability, apart from one another. It does not know who
// writes to it.
namespace jbdlab::sim {

// One figure of a device model, for reports: what it is and where it comes from.
struct DeviceParameter {
  std::string_view key;
  std::string value;
  std::string_view unit;
  std::string_view source;
};

// What a device tells the block layer, and the people.
struct DeviceInfo {
  std::string_view name;
  std::string_view summary;
  bool volatile_cache = false;  // a completed write may be lost unless flushed or FUA
  bool fua = false;             // can write one request through to stable media
  bool rotational = false;
  std::uint32_t max_sectors = 2560;  // of one request
  std::uint32_t max_segments = 128;  // pieces of memory in one request
  // How long the kernel takes to hand a step of a flush sequence to the driver (a kworker's job).
  Duration requeue_delay{};
  std::vector<DeviceParameter> parameters;
};

// How long things take. Called once for each request, in the order of arrival.
class CostModel {
 public:
  virtual ~CostModel() = default;
  // When `request`, which arrives at `now`, will be complete: at `now` or later.
  virtual Time completion(const Request& request, Time now) = 0;
};

// Which completed and unfinished writes a crash image holds.
enum class Keep : std::uint8_t {
  completed,  // every completed write, whatever was flushed: an image copied while mounted
  durable,    // what a flush or FUA made durable, and no more
  random,     // that, and a random part of the rest, torn at sectors of 512 bytes
};

// One request, as the log of requests keeps it.
struct RequestRecord {
  IoOp op = IoOp::read;
  bool fua = false;
  Sector sector{};
  std::uint32_t sectors = 0;
  std::uint64_t arrival = 0;      // from 1, in the order of arrival
  std::uint64_t completion = 0;   // from 1, in the order of completion; 0: in flight
  std::uint64_t flush_epoch = 0;  // flushes completed before it arrived
  Time arrived{};
  Time completed{};
};

struct DeviceOptions {
  std::uint64_t seed = 0;         // of the whole run: a device forks the stream "device"
  bool track_durability = false;  // crash_image() other than Keep::completed; costs memory
  bool keep_log = false;          // log(); costs memory
};

// Durability. With a volatile cache, a completed write is volatile until a flush that *arrives*
// after its completion completes; a FUA write is durable when it completes. Without one, so is
// every write. A write in flight may have reached the media in part.
//
// Contents change when a write completes; a read gets what is there when it completes itself. The
// order of requests in flight is the cost model's: whoever reads a block while a write of it is in
// flight may get either (the page and buffer caches never do).
class Device {
 public:
  Device(Engine& engine, DeviceInfo info, std::unique_ptr<CostModel> cost, BlockStore contents,
         const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const noexcept { return info_; }
  std::uint32_t chunk_size() const noexcept { return contents_.chunk_size(); }
  std::uint64_t sector_count() const noexcept { return contents_.size() / kSectorSize; }

  // Takes `request`, which lives until its `done` has been called. Ranges lie inside of the device
  // (checked: bounds of what comes from a disk are the file system's business).
  void submit(Request& request);

  // Every completed write, now.
  const BlockStore& contents() const noexcept { return contents_; }
  // What a power cut at this moment leaves. `seed` is for Keep::random: the same one gives the same
  // image. Other than Keep::completed needs DeviceOptions::track_durability.
  BlockStore crash_image(Keep keep, std::uint64_t seed = 0) const;

  std::uint64_t completed_requests() const noexcept { return completed_; }
  std::uint64_t completed_flushes() const noexcept { return flushes_; }
  // Sets `*flag` in the event in which the `count`-th request completes: where Engine::run_until()
  // stops. The flag outlives the device.
  void notify_after(std::uint64_t count, bool* flag) noexcept {
    notify_count_ = count;
    notify_flag_ = flag;
  }
  const std::vector<RequestRecord>& log() const noexcept { return log_; }

 private:
  struct VolatileWrite;
  void complete(Request& request);
  void apply(const Request& request);
  void track_completed(const Request& request);
  void make_durable(std::uint64_t last_completion);

  Engine& engine_;
  DeviceInfo info_;
  std::unique_ptr<CostModel> cost_;
  BlockStore contents_;
  std::optional<BlockStore> durable_;    // if durability is tracked
  std::vector<VolatileWrite> volatile_;  // in the order of completion
  const DeviceOptions options_;
  std::vector<const Request*> in_flight_;  // tracked only; in the order of arrival
  std::uint64_t arrivals_ = 0, completed_ = 0, flushes_ = 0;
  std::uint64_t notify_count_ = 0;
  bool* notify_flag_ = nullptr;
  std::vector<RequestRecord> log_;
};

// The devices that there are, by name: "ram", "loop-file". `cost` gets a random stream of its own.
struct DeviceKind {
  DeviceInfo (*info)();
  std::unique_ptr<CostModel> (*cost)(Random stream);
};
std::span<const DeviceKind> device_kinds() noexcept;

// Errors: usage (no device of that name; the sentence lists those that there are).
Result<std::unique_ptr<Device>> make_device(std::string_view name, Engine& engine,
                                            BlockStore contents, const DeviceOptions& options);

}  // namespace jbdlab::sim
