#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

// What people write as the value of an option. Every error is Errc::usage and a sentence that
// quotes what was written.
namespace jbdlab::cli {

// A whole number, decimal or 0x hexadecimal.
Result<std::uint64_t> parse_number(std::string_view text);

// Bytes: a decimal number and, if wanted, K, M, G or T (powers of 1024; small letters and "KiB",
// "KB" are the same).
Result<std::uint64_t> parse_size(std::string_view text);

// A duration: a decimal number, with a fraction if wanted, and one of ns, us, ms, s. A fraction of
// a nanosecond is an error.
Result<std::chrono::nanoseconds> parse_time(std::string_view text);

// "7" or "7..12", both ends included; a range may lead over the wrap of the tids.
struct TidRange {
  Tid first;
  Tid last;
  bool contains(Tid tid) const noexcept { return !first.after(tid) && !tid.after(last); }
};
Result<TidRange> parse_tid_range(std::string_view text);

}  // namespace jbdlab::cli
