// As gtest_main, but says so, by the exit status that ctest takes for "skipped", where this
// machine could run none of the tests.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const auto& all = *testing::UnitTest::GetInstance();
  constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt
  return status == 0 && all.skipped_test_count() > 0 &&
                 all.skipped_test_count() == all.test_to_run_count()
             ? kSkipped
             : status;
}
