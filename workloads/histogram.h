#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace jbdlab::workloads {

// How often each value was seen, for values of any size in little memory, in integers only.
//
// Values below 2^kPrecisionBits are counted exactly. Above, each power of two is cut into
// 2^(kPrecisionBits - 1) buckets of equal width, so that a bucket is never wider than 1/128 of its
// values (the idea of HdrHistogram, Gil Tene). A percentile is the greatest value of the bucket
// that holds it, and never more than max(): at most 0.8 % too high, never too low.
class Histogram {
 public:
  static constexpr unsigned kPrecisionBits = 8;

  void add(std::uint64_t value) { add_times(value, 1); }
  void add_times(std::uint64_t value, std::uint64_t times) {
    if (times == 0) return;
    const std::size_t index = index_of(value);
    if (index >= counts_.size()) counts_.resize(index + 1);
    counts_[index] += times;
    count_ += times;
    if (value > max_) max_ = value;
  }
  Histogram& operator+=(const Histogram& other) {
    if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
    for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
    return *this;
  }

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t max() const noexcept { return max_; }  // exact; 0 if nothing was added

  // The smallest value such that at least `per_mille` / 1000 of all values are not greater (nearest
  // rank), as exact as the buckets are; 0 if nothing was added. 0 < per_mille <= 1000.
  std::uint64_t at_per_mille(std::uint32_t per_mille) const {
    CHECK(per_mille > 0 && per_mille <= 1000);
    // ceil(count * per_mille / 1000), without the product that could overflow
    const std::uint64_t rank = count_ / 1000 * per_mille + (count_ % 1000 * per_mille + 999) / 1000;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= rank && seen != 0) return last_of(i) < max_ ? last_of(i) : max_;
    }
    return max_;
  }

 private:
  static constexpr std::size_t kExact = std::size_t{1} << kPrecisionBits;
  static constexpr std::size_t kPerOctave = kExact / 2;

  // A value of `width` bits more than kPrecisionBits keeps its kPrecisionBits highest bits.
  static constexpr std::size_t index_of(std::uint64_t value) {
    if (value < kExact) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kPrecisionBits;
    return kExact + (shift - 1) * kPerOctave + static_cast<std::size_t>(value >> shift) -
           kPerOctave;
  }
  // The greatest value that index_of() sends to `index`.
  static constexpr std::uint64_t last_of(std::size_t index) {
    if (index < kExact) return index;
    const auto shift = static_cast<unsigned>((index - kExact) / kPerOctave + 1);
    const std::uint64_t high = (index - kExact) % kPerOctave + kPerOctave;
    return (high << shift) + ((std::uint64_t{1} << shift) - 1);
  }

  std::vector<std::uint64_t> counts_;  // as long as the greatest value asks for
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace jbdlab::workloads
