#pragma once

#include <chrono>
#include <cstdint>

namespace jbdlab {

// Simulated time. SimClock has no now(): only an Engine knows the time. Time zero is the moment
// the run begins (just before mount).
struct SimClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  static constexpr bool is_steady = true;
};
using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<SimClock, Duration>;

}  // namespace jbdlab
