#include "sim/device/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sim/engine/random.h"

namespace jbdlab::sim {
namespace {

std::vector<std::byte> random_bytes(Random& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

std::vector<std::byte> all_of(const BlockStore& store) {
  std::vector<std::byte> bytes(store.size());
  store.read_bytes(0, bytes);
  return bytes;
}

class TemporaryFile {
 public:
  TemporaryFile() {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "store_test.XXXXXX").string();
};

class StoreOfChunkSize : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(BlockSizes, StoreOfChunkSize, ::testing::Values(1024U, 2048U, 4096U));

TEST_P(StoreOfChunkSize, AgreesWithAPlainArray) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::uint32_t chunk = GetParam();
    const std::uint64_t size = (1000 + random.below(600)) * chunk + random.below(chunk / 512) * 512;
    BlockStore store(chunk, size);
    std::vector<std::byte> plain(size);
    BlockStore copy = store;
    std::vector<std::byte> plain_copy = plain;
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t index = random.below(size / chunk);
      const auto place = plain.begin() + static_cast<std::ptrdiff_t>(index * chunk);
      switch (random.below(6)) {
        case 0: {  // bytes
          const auto bytes = random_bytes(random, chunk);
          store.write(index, BlockRef::copy_of(bytes));
          std::ranges::copy(bytes, place);
          break;
        }
        case 1: {  // a pattern
          const BlockRef block = BlockRef::pattern(chunk, 77, index * chunk, 100, chunk - 7);
          store.write(index, block);
          std::ranges::copy(block.bytes(), place);
          break;
        }
        case 2:  // zeros
          store.write(index, BlockRef::zeros(chunk));
          std::fill_n(place, chunk, std::byte{0});
          break;
        case 3: {  // a range of bytes
          const auto bytes = random_bytes(random, random.below(3 * chunk));
          const std::uint64_t offset = random.below(size - bytes.size() + 1);
          store.write_bytes(offset, bytes);
          std::ranges::copy(bytes, plain.begin() + static_cast<std::ptrdiff_t>(offset));
          break;
        }
        case 4: {  // read a range
          std::vector<std::byte> bytes(random.below(3 * chunk));
          const std::uint64_t offset = random.below(size - bytes.size() + 1);
          store.read_bytes(offset, bytes);
          ASSERT_TRUE(std::ranges::equal(bytes, std::span(plain).subspan(offset, bytes.size())));
          break;
        }
        default:  // a copy, which later writes to either do not change
          if (random.chance(1, 10)) {
            copy = store;
            plain_copy = plain;
          }
      }
    }
    EXPECT_EQ(all_of(store), plain);
    EXPECT_EQ(all_of(copy), plain_copy);
  }
}

TEST_P(StoreOfChunkSize, GivesItsChunksInOrderAndLoadsThemAgain) {
  const std::uint32_t chunk = GetParam();
  Random random(chunk);
  const std::uint64_t size = 5000 * std::uint64_t{chunk} + 512;  // the last chunk is a part
  BlockStore store(chunk, size);
  for (int i = 0; i < 50; ++i) {
    store.write(random.below(5000), BlockRef::copy_of(random_bytes(random, chunk)));
  }
  const auto tail = random_bytes(random, 512);
  store.write_bytes(size - 512, tail);
  store.write(17, BlockRef::copy_of(std::vector<std::byte>(chunk)));  // bytes that are all zero

  const TemporaryFile file;
  std::filesystem::resize_file(file.path(), size);
  std::fstream out(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t last_end = 0;
  EXPECT_TRUE(store.for_each_chunk([&](std::uint64_t offset, ByteSpan bytes) {
    EXPECT_GE(offset, last_end);
    EXPECT_NE(offset, 17U * chunk);
    last_end = offset + bytes.size();
    std::vector<char> chars(bytes.size());
    std::ranges::transform(bytes, chars.begin(), [](std::byte b) { return static_cast<char>(b); });
    out.seekp(static_cast<std::streamoff>(offset));
    out.write(chars.data(), static_cast<std::streamsize>(chars.size()));
    return true;
  }));
  out.close();
  EXPECT_EQ(last_end, size);

  const auto loaded = BlockStore::load(file.path(), chunk);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().what;
  EXPECT_EQ(loaded->size(), size);
  EXPECT_EQ(all_of(*loaded), all_of(store));
  EXPECT_LE(loaded->used_chunks(), 51U);  // what was a hole costs nothing
}

TEST(Store, StopsWhenTheVisitorHasEnough) {
  BlockStore store(1024, 4096);
  store.write(0, BlockRef::pattern(1024, 1, 0, 0, 1024));
  store.write(2, BlockRef::pattern(1024, 1, 0, 0, 1024));
  int visits = 0;
  EXPECT_FALSE(store.for_each_chunk([&](std::uint64_t, ByteSpan) { return ++visits > 1; }));
  EXPECT_EQ(visits, 1);
}

TEST(Store, AFileThatIsNotThereIsAnError) {
  const auto loaded = BlockStore::load("/nonexistent/image", 4096);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, Errc::io);
  EXPECT_EQ(loaded.error().what, "/nonexistent/image: cannot be opened: No such file or directory");
}

TEST(Store, AFileOfAnOddLengthIsRoundedUpToSectors) {
  const TemporaryFile file;
  std::ofstream(file.path()) << "abc";
  const auto loaded = BlockStore::load(file.path(), 1024);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->size(), 512U);
  EXPECT_EQ(loaded->read(0).bytes()[2], std::byte{'c'});
}

TEST(Store, ZerosCostNoMemory) {
  BlockStore store(4096, std::uint64_t{1} << 40);
  store.write(std::uint64_t{1} << 27, BlockRef::zeros(4096));
  EXPECT_EQ(store.used_chunks(), 0U);
  store.write(std::uint64_t{1} << 27, BlockRef::pattern(4096, 1, 0, 0, 4096));
  EXPECT_EQ(store.used_chunks(), 1U);
  store.write(std::uint64_t{1} << 27, BlockRef::zeros(4096));
  EXPECT_EQ(store.used_chunks(), 0U);
}

}  // namespace
}  // namespace jbdlab::sim
