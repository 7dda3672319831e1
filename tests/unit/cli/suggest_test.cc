#include "cli/suggest.h"

#include <gtest/gtest.h>

#include <array>

namespace jbdlab::cli {
namespace {

struct Row {
  const char* word;
  const char* want;
};
class Suggest : public testing::TestWithParam<Row> {};

TEST_P(Suggest, FindsWhatWasMeant) {
  constexpr auto kWords =
      std::to_array<std::string_view>({"run", "inspect", "log", "stats", "recover", "help"});
  EXPECT_EQ(nearest(GetParam().word, kWords), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(Rows, Suggest,
                         testing::Values(Row{"inspcet", "inspect"}, Row{"insp", "inspect"},
                                         Row{"lgo", "log"}, Row{"logs", "log"},
                                         Row{"stat", "stats"}, Row{"recovery", "recover"},
                                         Row{"hlep", "help"}, Row{"xyzzy", ""}, Row{"", ""},
                                         Row{"mount", ""}));

TEST(DidYouMean, IsNothingWithoutACandidate) {
  constexpr auto kWords = std::to_array<std::string_view>({"--json"});
  EXPECT_EQ(did_you_mean("--jsno", kWords), "; did you mean --json?");
  EXPECT_EQ(did_you_mean("--volume", kWords), "");
}

}  // namespace
}  // namespace jbdlab::cli
