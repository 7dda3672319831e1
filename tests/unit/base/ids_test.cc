#include "base/ids.h"

#include <gtest/gtest.h>

namespace jbdlab {
namespace {

struct Row {
  const char* name;
  std::uint32_t younger;
  std::uint32_t older;
};
constexpr Row kRows[] = {
    {"one_later", 2, 1},
    {"zero_follows_the_largest", 0, 0xFFFF'FFFF},
    {"across_the_wrap", 5, 0xFFFF'FFF0},
    {"just_below_half_the_range", 0x7FFF'FFFF, 0},
};

class TidOrder : public testing::TestWithParam<Row> {};

TEST_P(TidOrder, IsModular) {
  const Tid younger{GetParam().younger};
  const Tid older{GetParam().older};
  EXPECT_TRUE(younger.after(older));
  EXPECT_FALSE(older.after(younger));
  EXPECT_FALSE(older.after(older));
}

INSTANTIATE_TEST_SUITE_P(Rows, TidOrder, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Tid, NextWraps) { EXPECT_EQ(Tid{0xFFFF'FFFF}.next(), Tid{0}); }

}  // namespace
}  // namespace jbdlab
