#include "cli/values.h"

#include <gtest/gtest.h>

#include <cctype>
#include <optional>
#include <string>

namespace jbdlab::cli {
namespace {

using std::chrono::nanoseconds;

struct SizeRow {
  const char* text;
  std::optional<std::uint64_t> want;
};
class Size : public testing::TestWithParam<SizeRow> {};

TEST_P(Size, IsReadOrRefused) {
  const auto size = parse_size(GetParam().text);
  ASSERT_EQ(size.has_value(), GetParam().want.has_value()) << GetParam().text;
  if (size) {
    EXPECT_EQ(*size, *GetParam().want);
  } else {
    EXPECT_EQ(size.error().code, Errc::usage);
    EXPECT_NE(size.error().what.find(std::string{"\""} + GetParam().text + "\""),
              std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Size,
    testing::Values(SizeRow{"0", 0}, SizeRow{"4096", 4096}, SizeRow{"1B", 1},
                    SizeRow{"64K", 65'536}, SizeRow{"64k", 65'536}, SizeRow{"64KiB", 65'536},
                    SizeRow{"64KB", 65'536}, SizeRow{"3M", 3'145'728}, SizeRow{"1G", 1'073'741'824},
                    SizeRow{"1T", 1'099'511'627'776}, SizeRow{"18446744073709551615", ~0ULL},
                    SizeRow{"18446744073709551616", {}}, SizeRow{"16777216T", {}},
                    SizeRow{"16777215T", 16'777'215ULL << 40}, SizeRow{"", {}}, SizeRow{"K", {}},
                    SizeRow{"-1", {}}, SizeRow{"1.5G", {}}, SizeRow{"1X", {}}, SizeRow{" 1", {}},
                    SizeRow{"1 K", {}}, SizeRow{"1KK", {}}, SizeRow{"0x10", {}}));

struct TimeRow {
  const char* text;
  std::optional<std::int64_t> want_ns;
};
class TimeValue : public testing::TestWithParam<TimeRow> {};

TEST_P(TimeValue, IsReadOrRefused) {
  const auto time = parse_time(GetParam().text);
  ASSERT_EQ(time.has_value(), GetParam().want_ns.has_value()) << GetParam().text;
  if (time) {
    EXPECT_EQ(*time, nanoseconds{*GetParam().want_ns});
  } else {
    EXPECT_EQ(time.error().code, Errc::usage);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, TimeValue,
    testing::Values(TimeRow{"0s", 0}, TimeRow{"5s", 5'000'000'000}, TimeRow{"5ms", 5'000'000},
                    TimeRow{"5us", 5'000}, TimeRow{"5ns", 5}, TimeRow{"1.5s", 1'500'000'000},
                    TimeRow{"0.8ms", 800'000}, TimeRow{"0.000000001s", 1}, TimeRow{"1.50ns", {}},
                    TimeRow{"1.0ns", 1}, TimeRow{"0.0000000001s", {}},
                    TimeRow{"9223372035s", 9'223'372'035'000'000'000}, TimeRow{"9223372036s", {}},
                    TimeRow{"5", {}}, TimeRow{"s", {}}, TimeRow{"1.s", {}}, TimeRow{".5s", {}},
                    TimeRow{"5m", {}}, TimeRow{"-5s", {}}, TimeRow{"5 s", {}}, TimeRow{"", {}}));

struct TidRow {
  const char* text;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> want;
};
class Tids : public testing::TestWithParam<TidRow> {};

TEST_P(Tids, AreReadOrRefused) {
  const auto range = parse_tid_range(GetParam().text);
  ASSERT_EQ(range.has_value(), GetParam().want.has_value()) << GetParam().text;
  if (!range) return;
  EXPECT_EQ(range->first.value(), GetParam().want->first);
  EXPECT_EQ(range->last.value(), GetParam().want->second);
  EXPECT_TRUE(range->contains(range->first));
  EXPECT_TRUE(range->contains(range->last));
  EXPECT_FALSE(range->contains(range->last.next()));
}

INSTANTIATE_TEST_SUITE_P(Rows, Tids,
                         testing::Values(TidRow{"7", {{7, 7}}}, TidRow{"7..12", {{7, 12}}},
                                         TidRow{"0x10", {{16, 16}}},
                                         TidRow{"4294967290..3", {{4'294'967'290, 3}}},
                                         TidRow{"12..7", {}}, TidRow{"4294967296", {}},
                                         TidRow{"7..", {}}, TidRow{"..7", {}}, TidRow{"7.12", {}},
                                         TidRow{"", {}}, TidRow{"x", {}}));

}  // namespace
}  // namespace jbdlab::cli
