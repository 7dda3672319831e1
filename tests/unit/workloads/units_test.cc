#include "workloads/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace jbdlab::workloads {
namespace {

struct UnitCase {
  const char* name;
  std::string (*format)(std::uint64_t);
  std::uint64_t value;
  std::string_view want;
};
constexpr UnitCase kUnitCases[] = {
    {"no_bytes", format_bytes, 0, "0 B"},
    {"bytes", format_bytes, 1023, "1023 B"},
    {"kib", format_bytes, 1024, "1.0 KiB"},
    {"kib_rounded_up", format_bytes, 1024 + 52, "1.1 KiB"},
    {"kib_rounded_down", format_bytes, 1024 + 51, "1.0 KiB"},
    {"kib_just_below_mib", format_bytes, (1 << 20) - 52, "1023.9 KiB"},
    {"kib_that_rounds_to_mib", format_bytes, (1 << 20) - 51, "1.0 MiB"},
    {"gib", format_bytes, std::uint64_t{3} << 29, "1.5 GiB"},
    {"tib", format_bytes, std::uint64_t{5} << 40, "5.0 TiB"},
    {"greatest", format_bytes, ~std::uint64_t{0}, "16384.0 PiB"},
    {"no_time", format_duration_ns, 0, "0 ns"},
    {"ns", format_duration_ns, 999, "999 ns"},
    {"us", format_duration_ns, 1000, "1.000 us"},
    {"us_exact", format_duration_ns, 12'345, "12.345 us"},
    {"us_up_to_a_millisecond", format_duration_ns, 999'999, "999.999 us"},
    {"ms_rounded", format_duration_ns, 1'234'500, "1.235 ms"},
    {"ms_that_rounds_to_s", format_duration_ns, 999'999'500, "1.000 s"},
    {"s", format_duration_ns, 90'000'499'999, "90.000 s"},
    {"s_just_below_a_thousand", format_duration_ns, 999'999'499'999, "999.999 s"},
    {"s_that_rounds_to_a_thousand", format_duration_ns, 999'999'500'000, "1000 s"},
    {"s_from_a_thousand_on", format_duration_ns, 1'234'499'999'999, "1234 s"},
    {"greatest_time", format_duration_ns, ~std::uint64_t{0}, "18446744074 s"},
    {"small_rate", format_thousandths, 56'690, "56.7"},
    {"smallest_rate", format_thousandths, 1, "0.001"},
    {"rate_of_four_digits", format_thousandths, 9'999, "9.999"},
    {"rate_of_hundreds", format_thousandths, 999'949, "999.9"},
    {"rate_that_rounds_to_a_thousand", format_thousandths, 999'950, "1000"},
    {"big_rate", format_thousandths, 123'456'500, "123457"},
};
class UnitsTest : public testing::TestWithParam<UnitCase> {};
TEST_P(UnitsTest, RoundsToTheNearest) {
  EXPECT_EQ(GetParam().format(GetParam().value), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(Workloads, UnitsTest, testing::ValuesIn(kUnitCases),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace jbdlab::workloads
