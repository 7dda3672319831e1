#include "cli/values.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace jbdlab::cli {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array kSizeUnits = std::to_array<Unit>({
    {"", 1},
    {"B", 1},
    {"K", 1ULL << 10},
    {"M", 1ULL << 20},
    {"G", 1ULL << 30},
    {"T", 1ULL << 40},
});
constexpr std::array kTimeUnits = std::to_array<Unit>({
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
});

// Digits at the front of `text`, which it loses; nothing if there are none or they are too many.
std::optional<std::uint64_t> take_digits(std::string_view& text, int base = 10) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  const auto value = take_digits(text, hex ? 16 : 10);
  if (!value || !text.empty()) return std::nullopt;
  return value;
}

// "KiB" and "kb" are "K".
std::string size_unit_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (name.size() == 3 && name.ends_with("IB")) name.resize(1);
  if (name.size() == 2 && name.ends_with("B")) name.resize(1);
  return name;
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text) {
  if (const auto value = whole_number(text)) return *value;
  return fail(Errc::usage, fmt::format("expected a whole number, found \"{}\"", text));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view rest = text;
  if (const auto value = take_digits(rest)) {
    const std::string unit_name = size_unit_name(rest);
    for (const Unit& unit : kSizeUnits) {
      if (unit.name != unit_name) continue;
      if (*value > kMax / unit.factor) {
        return fail(Errc::usage, fmt::format("the size \"{}\" is too large", text));
      }
      return *value * unit.factor;
    }
  }
  return fail(Errc::usage,
              fmt::format("expected a size such as 4096, 64K or 1G, found \"{}\"", text));
}

Result<std::chrono::nanoseconds> parse_time(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return fail(
        Errc::usage,
        fmt::format("expected a time such as 500us, 5ms or 1.5s, found \"{}\"{}", text, why));
  };
  std::string_view rest = text;
  const auto whole = take_digits(rest);
  if (!whole) return wrong("");
  std::string_view fraction;
  if (rest.starts_with('.')) {
    const std::size_t end = rest.find_first_not_of("0123456789", 1);
    fraction = rest.substr(1, end == std::string_view::npos ? end : end - 1);
    rest.remove_prefix(1 + fraction.size());
    if (fraction.empty()) return wrong("");
  }
  for (const Unit& unit : kTimeUnits) {
    if (unit.name != rest) continue;
    if (*whole >
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / unit.factor - 1) {
      return wrong(": too long");
    }
    std::uint64_t ns = *whole * unit.factor;
    std::uint64_t place = unit.factor;
    for (const char digit : fraction) {
      if (place == 1 && digit != '0') return wrong(": finer than a nanosecond");
      if (place > 1) place /= 10;
      ns += place * static_cast<std::uint64_t>(digit - '0');
    }
    return std::chrono::nanoseconds{static_cast<std::int64_t>(ns)};
  }
  return wrong(rest.empty() ? ": the unit is missing" : "");
}

Result<TidRange> parse_tid_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto first = whole_number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : whole_number(text.substr(dots + 2));
  constexpr std::uint64_t kTidMax = std::numeric_limits<std::uint32_t>::max();
  if (!first || !last || *first > kTidMax || *last > kTidMax) {
    return fail(
        Errc::usage,
        fmt::format("expected a transaction id such as 7, or a range 7..12, found \"{}\"", text));
  }
  const TidRange range{Tid{static_cast<std::uint32_t>(*first)},
                       Tid{static_cast<std::uint32_t>(*last)}};
  if (range.first.after(range.last)) {
    return fail(Errc::usage, fmt::format("the range of transactions \"{}\" is empty", text));
  }
  return range;
}

}  // namespace jbdlab::cli
