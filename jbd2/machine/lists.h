#pragma once

#include <cstdint>

#include "base/check.h"
#include "jbd2/machine/buffer_head.h"

namespace jbdlab::jbd2 {

// A list of buffers through two of their own links, oldest first. A buffer is on one list of a kind
// at a time; the list does not own it.
template <BufferHead* BufferHead::* Prev, BufferHead* BufferHead::* Next>
class BufferHeadList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::uint32_t count() const noexcept { return count_; }
  BufferHead* first() const noexcept { return first_; }
  BufferHead* last() const noexcept { return last_; }
  static BufferHead* next(const BufferHead& buffer) noexcept { return buffer.*Next; }

  void push_back(BufferHead& buffer) noexcept {
    buffer.*Prev = last_;
    buffer.*Next = nullptr;
    (last_ != nullptr ? last_->*Next : first_) = &buffer;
    last_ = &buffer;
    ++count_;
  }
  void push_front(BufferHead& buffer) noexcept {
    buffer.*Prev = nullptr;
    buffer.*Next = first_;
    (first_ != nullptr ? first_->*Prev : last_) = &buffer;
    first_ = &buffer;
    ++count_;
  }
  void remove(BufferHead& buffer) noexcept {
    CHECK(count_ > 0);
    BufferHead* const before = buffer.*Prev;
    BufferHead* const after = buffer.*Next;
    (before != nullptr ? before->*Next : first_) = after;
    (after != nullptr ? after->*Prev : last_) = before;
    buffer.*Prev = buffer.*Next = nullptr;
    --count_;
  }

 private:
  BufferHead* first_ = nullptr;
  BufferHead* last_ = nullptr;
  std::uint32_t count_ = 0;
};

using TransactionList = BufferHeadList<&BufferHead::prev, &BufferHead::next>;
using CheckpointList = BufferHeadList<&BufferHead::cp_prev, &BufferHead::cp_next>;

}  // namespace jbdlab::jbd2
