#include "workloads/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace jbdlab::workloads {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(Histogram, OfNothingIsZero) {
  const Histogram h;
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.max(), 0u);
  EXPECT_EQ(h.at_per_mille(500), 0u);
}

struct ExactCase {
  const char* name;
  std::vector<std::uint64_t> values;
  std::uint64_t p50, p95, p99, p999;
};
const ExactCase kExactCases[] = {
    {"one_zero", {0}, 0, 0, 0, 0},
    {"one", {200}, 200, 200, 200, 200},
    {"two", {1, 3}, 1, 3, 3, 3},
    {"three", {7, 5, 9}, 7, 9, 9, 9},
    {"twenty",
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20},
     10,
     19,
     20,
     20},
    {"greatest_is_never_exceeded", {1'000'001}, 1'000'001, 1'000'001, 1'000'001, 1'000'001},
    {"all_bits", {kMax}, kMax, kMax, kMax, kMax},
};
class HistogramTest : public testing::TestWithParam<ExactCase> {};
TEST_P(HistogramTest, GivesTheNearestRank) {
  Histogram h;
  for (const std::uint64_t v : GetParam().values) h.add(v);
  EXPECT_EQ(h.count(), GetParam().values.size());
  EXPECT_EQ(h.at_per_mille(500), GetParam().p50);
  EXPECT_EQ(h.at_per_mille(950), GetParam().p95);
  EXPECT_EQ(h.at_per_mille(990), GetParam().p99);
  EXPECT_EQ(h.at_per_mille(999), GetParam().p999);
  EXPECT_EQ(h.at_per_mille(1000), h.max());
}
INSTANTIATE_TEST_SUITE_P(Workloads, HistogramTest, testing::ValuesIn(kExactCases),
                         [](const auto& row) { return row.param.name; });

// SplitMix64: any sequence will do, as long as it is the same everywhere.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e37'79b9'7f4a'7c15;
  z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
  return z ^ z >> 31;
}

TEST(Histogram, IsAtMostOne128thAboveAnExactSort) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::uint64_t state = seed;
    std::vector<std::uint64_t> values(1 + next_random(state) % 2000);
    // values of all magnitudes: a random number of their high bits is zero
    for (std::uint64_t& v : values) v = next_random(state) >> next_random(state) % 64;
    Histogram h;
    for (const std::uint64_t v : values) h.add(v);
    std::sort(values.begin(), values.end());
    for (const std::uint32_t per_mille : {1u, 10u, 250u, 500u, 950u, 990u, 999u, 1000u}) {
      const std::size_t rank = (values.size() * per_mille + 999) / 1000;
      const std::uint64_t exact = values[rank - 1];
      const std::uint64_t got = h.at_per_mille(per_mille);
      ASSERT_GE(got, exact) << "seed " << seed << ", per mille " << per_mille;
      ASSERT_LE(got - exact, exact / 128) << "seed " << seed << ", per mille " << per_mille;
    }
    ASSERT_EQ(h.max(), values.back()) << "seed " << seed;
  }
}

// Every bucket border: the first value of a bucket is one above the last of the one before.
TEST(Histogram, HasNoGapAtAnyPowerOfTwo) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    Histogram h;
    h.add(power - 1);
    h.add(power);
    EXPECT_EQ(h.at_per_mille(500), power - 1) << bit;
    EXPECT_EQ(h.at_per_mille(1000), power) << bit;
  }
}

TEST(Histogram, AddsUp) {
  Histogram a, b, both;
  for (std::uint64_t v : {1u, 1000u, 5u}) {
    a.add(v);
    both.add(v);
  }
  b.add_times(70'000, 3);
  b.add_times(9, 0);
  for (int i = 0; i < 3; ++i) both.add(70'000);
  a += b;
  EXPECT_EQ(a.count(), 6u);
  EXPECT_EQ(a.max(), 70'000u);
  for (std::uint32_t per_mille = 1; per_mille <= 1000; ++per_mille)
    ASSERT_EQ(a.at_per_mille(per_mille), both.at_per_mille(per_mille)) << per_mille;
}

TEST(Histogram, RankDoesNotOverflow) {
  Histogram h;
  h.add_times(1, kMax / 2);
  h.add_times(2, kMax / 2);
  EXPECT_EQ(h.at_per_mille(500), 1u);
  EXPECT_EQ(h.at_per_mille(501), 2u);
}

}  // namespace
}  // namespace jbdlab::workloads
