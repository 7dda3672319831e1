#include "workloads/units.h"

#include <fmt/core.h>

#include <array>
#include <string_view>

namespace jbdlab::workloads {

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  std::size_t unit = 0;
  std::uint64_t size = 1024;
  std::uint64_t tenths = 0;
  for (;; ++unit, size *= 1024) {
    // whole and rest apart: bytes * 10 may overflow
    tenths = bytes / size * 10 + (bytes % size * 10 + size / 2) / size;
    if (tenths < 10240 || unit + 1 == kUnits.size()) break;
  }
  return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kUnits[unit]);
}

std::string format_duration_ns(std::uint64_t ns) {
  constexpr std::array<std::string_view, 3> kUnits{"us", "ms", "s"};
  if (ns < 1000) return fmt::format("{} ns", ns);
  // from here on three decimals would be 1000.000 s or more
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (ns >= 1000 * kSecond - kSecond / 2000)
    return fmt::format("{} s", ns / kSecond + (ns % kSecond >= kSecond / 2 ? 1 : 0));
  std::size_t unit = 0;
  std::uint64_t divisor = 1;  // to thousandths of the unit
  std::uint64_t thousandths = 0;
  for (;; ++unit, divisor *= 1000) {
    thousandths = ns / divisor + (ns % divisor >= (divisor + 1) / 2 && divisor > 1 ? 1 : 0);
    if (thousandths < 1'000'000 || unit + 1 == kUnits.size()) break;
  }
  return fmt::format("{}.{:03} {}", thousandths / 1000, thousandths % 1000, kUnits[unit]);
}

std::string format_thousandths(std::uint64_t thousandths) {
  if (thousandths < 10'000) return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  const std::uint64_t tenths = (thousandths + 50) / 100;
  if (tenths < 10'000) return fmt::format("{}.{}", tenths / 10, tenths % 10);
  return fmt::format("{}", (thousandths + 500) / 1000);
}

}  // namespace jbdlab::workloads
