// How a journal is read from the disk: few reads for a scan, and no more than asked for by picks.
#include "analyze/journal_source.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace jbdlab::analyze {
namespace {

constexpr std::uint32_t kBlockSize = 1024;
constexpr std::uint32_t kBlockCount = 4096;

// Blocks that begin with their own number; counts what is read.
class CountingSource final : public ByteSource {
 public:
  std::uint64_t size() const noexcept override { return std::uint64_t{kBlockCount} * kBlockSize; }
  Result<void> read(std::uint64_t offset, MutableByteSpan out) override {
    ++reads;
    bytes += out.size();
    for (std::size_t at = 0; at + kBlockSize <= out.size(); at += kBlockSize) {
      const std::uint64_t block = (offset + at) / kBlockSize;
      if (block == bad_block) return fail(Errc::io, "a bad block");
      set_le<std::uint32_t>(out, at, static_cast<std::uint32_t>(block));
    }
    return {};
  }

  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bad_block = ~std::uint64_t{0};
};

class JournalReads : public testing::Test {
 protected:
  // True if the block is there and is the right one.
  bool read(std::uint32_t block) {
    const auto bytes = journal_.read(LogBlock{block});
    return bytes && get_le<std::uint32_t>(*bytes, 0) == block;
  }

  CountingSource disk_;
  RunBlockSource journal_{
      disk_, kBlockSize, kBlockCount, {{LogicalBlock{0}, FsBlock{0}, kBlockCount}}};
};

TEST_F(JournalReads, AreFewInOrder) {
  for (std::uint32_t block = 0; block < kBlockCount; ++block) ASSERT_TRUE(read(block)) << block;
  EXPECT_LE(disk_.reads, 20U);  // of 256 blocks each, and the first ones
  EXPECT_EQ(disk_.bytes, disk_.size());
}

TEST_F(JournalReads, AreOfOneBlockWhereSingleOnesArePicked) {
  for (std::uint32_t block = 3; block < kBlockCount; block += 7) ASSERT_TRUE(read(block)) << block;
  EXPECT_EQ(disk_.bytes, disk_.reads * kBlockSize);
}

TEST_F(JournalReads, LoseNoNeighbourOfABadBlock) {
  disk_.bad_block = 1000;
  for (std::uint32_t block = 0; block < kBlockCount; ++block) {
    EXPECT_EQ(read(block), block != 1000) << block;
  }
}

}  // namespace
}  // namespace jbdlab::analyze
