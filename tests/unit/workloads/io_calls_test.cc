#include "workloads/io_calls.h"

#include <gtest/gtest.h>

#include <vector>

namespace jbdlab::workloads {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct SplitCase {
  const char* name;
  IoCall write;
  std::vector<IoCall> calls;
};
const SplitCase kSplitCases[] = {
    {"nothing", {5, 0}, {}},
    {"one_byte", {5, 1}, {{5, 1}}},
    {"exactly_one_call", {4096, 8 * kMiB}, {{4096, 8 * kMiB}}},
    {"one_byte_more", {1, 8 * kMiB + 1}, {{1, 8 * kMiB}, {8 * kMiB + 1, 1}}},
    {"three", {0, 20 * kMiB}, {{0, 8 * kMiB}, {8 * kMiB, 8 * kMiB}, {16 * kMiB, 4 * kMiB}}},
};
class SplitTest : public testing::TestWithParam<SplitCase> {};
TEST_P(SplitTest, GivesCallsOfAtMost8MiB) {
  std::vector<IoCall> calls;
  for (const IoCall call : WriteCalls(GetParam().write)) calls.push_back(call);
  EXPECT_EQ(calls, GetParam().calls);
}
INSTANTIATE_TEST_SUITE_P(IoCalls, SplitTest, testing::ValuesIn(kSplitCases),
                         [](const auto& row) { return row.param.name; });

TEST(IoCalls, ReadsAreCutAndNotSplit) {
  EXPECT_EQ(read_call({4096, 100}, 0), (IoCall{4096, 100}));
  EXPECT_EQ(read_call({4096, 100}, 3), (IoCall{4396, 100}));
  EXPECT_EQ(read_call({0, 9 * kMiB}, 2), (IoCall{18 * kMiB, 8 * kMiB}));
  EXPECT_EQ(read_call({7, 0}, 5), (IoCall{7, 0}));
}

bool has_magic(const std::vector<std::byte>& bytes, std::size_t at) {
  return bytes[at] == std::byte{0xC0} && bytes[at + 1] == std::byte{0x3B} &&
         bytes[at + 2] == std::byte{0x39} && bytes[at + 3] == std::byte{0x98};
}

TEST(IoCalls, MagicStandsAtEachKibibyteOfTheWriteWhereItFits) {
  const std::uint32_t seed = pattern_seed("f");
  const IoCall write{100, 2 * 1024 + 3};  // the third one does not fit
  std::vector<std::byte> bytes(write.length), pattern(write.length);
  fill_magic(seed, write, write.offset, bytes);
  fill_pattern(seed, write.offset, pattern);
  EXPECT_TRUE(has_magic(bytes, 0));
  EXPECT_TRUE(has_magic(bytes, 1024));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i / 1024 == 2 || i % 1024 >= 4) {
      ASSERT_EQ(bytes[i], pattern[i]) << i;
    }
  }
}

TEST(IoCalls, MagicIsTheSameInPieces) {
  const std::uint32_t seed = pattern_seed("f");
  const IoCall write{4000, 5000};
  std::vector<std::byte> whole(write.length);
  fill_magic(seed, write, write.offset, whole);
  for (std::size_t piece : {1u, 3u, 96u, 1025u, 4096u}) {
    std::vector<std::byte> pieces(write.length);
    for (std::size_t at = 0; at < pieces.size(); at += piece) {
      const std::size_t size = std::min(piece, pieces.size() - at);
      fill_magic(seed, write, write.offset + at, MutableByteSpan(pieces).subspan(at, size));
    }
    EXPECT_EQ(pieces, whole) << piece;
  }
}

}  // namespace
}  // namespace jbdlab::workloads
