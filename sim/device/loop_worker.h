#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "sim/device/device.h"

namespace jbdlab::sim {

// The loop driver's worker: it serves one request after the other, in the order of arrival
// (drivers/block/loop.c, loop_process_work).
class LoopWorker {
 public:
  // When a request that arrives at `now` and takes `service` will be complete.
  Time serve(Time now, Duration service) noexcept {
    busy_until_ = std::max(now, busy_until_) + service;
    return busy_until_;
  }

 private:
  Time busy_until_{};
};

// Time for `sectors` at `bytes_per_us`, rounded up to whole nanoseconds.
constexpr Duration transfer_time(std::uint32_t sectors, std::uint64_t bytes_per_us) noexcept {
  const std::uint64_t bytes = std::uint64_t{sectors} * kSectorSize;
  return Duration(static_cast<std::int64_t>((bytes * 1000 + bytes_per_us - 1) / bytes_per_us));
}

}  // namespace jbdlab::sim
