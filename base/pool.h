#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.h"

#if defined(__has_feature)
#define JBDLAB_HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define JBDLAB_HAS_ASAN 1
#else
#define JBDLAB_HAS_ASAN 0
#endif

namespace jbdlab {

// Memory for what a simulation makes and drops all the time: blocks and coroutine frames. Freed
// pieces are kept by size and handed out again, which costs a few instructions where malloc, for
// pieces of this size, costs hundreds. Each thread has its own; they go back to malloc only by
// trim(). What a piece holds at first is undefined, so that a run cannot depend on what ran before
// it.
//
// Under the address sanitizer this is malloc, so that it sees every use of what was freed.
namespace pool {

inline constexpr std::size_t kStep = 32;  // sizes are rounded up to a multiple
inline constexpr std::size_t kLargest = JBDLAB_HAS_ASAN ? 0 : 4128;  // 4 KiB and a reference count

namespace detail {
struct Piece {
  Piece* next;
};
// A cache of free memory, which no result depends on; to pass it to every BlockRef and coroutine
// would cost more than it saves.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the reason is above.
inline constinit thread_local std::array<Piece*, kLargest / kStep> free_pieces{};

inline void* from_malloc(std::size_t size) {
  void* const memory = std::malloc(size);
  CHECK(memory != nullptr);
  return memory;
}
}  // namespace detail

// At least `size` > 0 bytes, aligned as malloc aligns.
inline void* allocate(std::size_t size) {
  if (size > kLargest) return detail::from_malloc(size);
  const std::size_t index = (size - 1) / kStep;
  detail::Piece*& first = detail::free_pieces[index];
  if (first == nullptr) return detail::from_malloc((index + 1) * kStep);
  detail::Piece* const piece = first;
  first = piece->next;
  return piece;
}

// `size` as it was allocated.
inline void release(void* memory, std::size_t size) noexcept {
  if (size > kLargest) {
    std::free(memory);
    return;
  }
  detail::Piece*& first = detail::free_pieces[(size - 1) / kStep];
  first = new (memory) detail::Piece{first};
}

// Gives the free pieces of this thread back to malloc.
inline void trim() noexcept {
  for (detail::Piece*& first : detail::free_pieces) {
    while (first != nullptr) std::free(std::exchange(first, first->next));
  }
}

}  // namespace pool
}  // namespace jbdlab
