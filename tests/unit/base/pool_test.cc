#include "base/pool.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace jbdlab {
namespace {

TEST(Pool, PiecesInUseDoNotOverlapWhateverTheirSize) {
  struct Held {
    std::byte* memory;
    std::size_t size;
  };
  std::vector<Held> held;
  const auto fill = [](const Held& h, std::size_t i) {
    std::memset(h.memory, static_cast<int>(i & 0xFF), h.size);
  };
  // Twice over, so that the second round is made of what the first gave back.
  for (int round = 0; round < 2; ++round) {
    for (std::size_t size = 1; size <= 2 * pool::kStep; ++size) {
      held.push_back({static_cast<std::byte*>(pool::allocate(size)), size});
    }
    for (const std::size_t size : {4112U, 4128U, 4129U, 70'000U}) {
      held.push_back({static_cast<std::byte*>(pool::allocate(size)), size});
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uintptr_t>(held[i].memory) % alignof(std::max_align_t), 0U);
      fill(held[i], i);
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
      const std::vector<std::byte> want(held[i].size, static_cast<std::byte>(i & 0xFF));
      EXPECT_EQ(std::memcmp(held[i].memory, want.data(), want.size()), 0) << held[i].size;
      pool::release(held[i].memory, held[i].size);
    }
    held.clear();
  }
}

TEST(Pool, HandsOutAgainWhatWasGivenBack) {
  if (pool::kLargest == 0) GTEST_SKIP() << "every piece is malloc's under the address sanitizer";
  void* const first = pool::allocate(4112);
  pool::release(first, 4112);
  void* const again = pool::allocate(4100);  // the same size, rounded up
  EXPECT_EQ(again, first);
  pool::release(again, 4100);
  pool::trim();
  EXPECT_EQ(pool::detail::free_pieces[(4100 - 1) / pool::kStep], nullptr);
}

}  // namespace
}  // namespace jbdlab
