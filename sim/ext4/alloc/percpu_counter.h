#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace jbdlab::ext4 {

// A counter as the kernel keeps those that every CPU changes (lib/percpu_counter.c): each CPU
// collects its changes and adds them to the shared count when they reach a batch. sum() is exact;
// read() is the shared count, which lags by up to a batch for each CPU. The inode allocator reads,
// and where directories go depends on the lag.
class PerCpuCounter {
 public:
  // Changes of fewer than max(32, 2 * CPUs) stay with their CPU (compute_batch_value).
  explicit PerCpuCounter(unsigned cpus = 2) : batch_(cpus > 16 ? 2 * std::int64_t{cpus} : 32) {}

  void set(std::uint64_t value) {
    shared_ = static_cast<std::int64_t>(value);
    local_.clear();
  }
  void add(unsigned cpu, std::int64_t change) {
    if (cpu >= local_.size()) local_.resize(std::size_t{cpu} + 1);
    std::int64_t& local = local_[cpu];
    local += change;
    if (std::abs(local) >= batch_) {
      shared_ += local;
      local = 0;
    }
  }
  std::uint64_t read() const noexcept { return positive(shared_); }
  std::uint64_t sum() const noexcept {
    std::int64_t total = shared_;
    for (const std::int64_t local : local_) total += local;
    return positive(total);
  }

 private:
  static std::uint64_t positive(std::int64_t value) noexcept {
    return value > 0 ? static_cast<std::uint64_t>(value) : 0;
  }

  std::int64_t batch_;
  std::int64_t shared_ = 0;
  std::vector<std::int64_t> local_;
};

}  // namespace jbdlab::ext4
