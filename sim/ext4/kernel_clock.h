#pragma once

#include <cstdint>

#include "base/time.h"
#include "sim/engine/engine.h"
#include "sim/ext4/inode.h"

namespace jbdlab::ext4 {

// The wall clock of the simulated kernel, as time stamps of inodes see it: a coarse clock that
// moves with the tick (4 ms at HZ 250), and a fine one for those whose change time somebody has
// looked at
// ("multigrain", Linux 6.13: fs/inode.c inode_set_ctime_current, kernel/time/timekeeping.c).
//
// Invariant: the coarse time never goes below a fine one that was handed out (the floor), so stamps
// stay in the order of changes.
class KernelClock {
 public:
  // `whole_seconds`: inodes have no room for more (128 bytes): stamps are cut.
  KernelClock(const sim::Engine& engine, std::uint64_t epoch_seconds, Duration tick,
              bool whole_seconds) noexcept
      : engine_(engine),
        epoch_seconds_(epoch_seconds),
        tick_(tick),
        whole_seconds_(whole_seconds) {}

  std::uint64_t epoch_seconds() const noexcept { return epoch_seconds_; }
  Duration tick() const noexcept { return tick_; }

  Timestamp coarse() const noexcept {
    const Time now = engine_.now();
    const Time tick{now.time_since_epoch() / tick_ * tick_};
    return stamp(tick > floor_ ? tick : floor_);
  }
  // current_time(): what a change now would be stamped with, without stamping.
  Timestamp current(const Inode& inode) const noexcept {
    const Timestamp coarse_now = coarse();
    if (inode.ctime_queried && coarse_now.nsec == inode.ctime.nsec) return stamp(engine_.now());
    return coarse_now;
  }
  // inode_set_ctime_current(): stamps the change time, and returns it.
  Timestamp set_ctime(Inode& inode) noexcept {
    Timestamp now = coarse();
    if (inode.ctime_queried && now <= inode.ctime) {
      floor_ = engine_.now();
      now = stamp(floor_);
    }
    if (now != inode.ctime || inode.ctime_queried) {
      inode.ctime = now;
      inode.ctime_queried = false;
    }
    return now;
  }

 private:
  Timestamp stamp(Time t) const noexcept {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t ns = t.time_since_epoch().count();
    return {static_cast<std::int64_t>(epoch_seconds_) + ns / kSecond,
            whole_seconds_ ? 0 : static_cast<std::uint32_t>(ns % kSecond)};
  }

  const sim::Engine& engine_;
  const std::uint64_t epoch_seconds_;
  const Duration tick_;
  const bool whole_seconds_;
  Time floor_{};
};

}  // namespace jbdlab::ext4
