#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/block_ref.h"
#include "base/bytes.h"

// How the operations of a script become system calls, and what they write: the parts of FORMAT.md
// that are arithmetic.
namespace jbdlab::workloads {

inline constexpr std::uint64_t kCallBytesMax = 8 << 20;  // a longer write is split

struct IoCall {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t length = 0;  // bytes
  friend bool operator==(const IoCall&, const IoCall&) = default;
};

// The write calls of one write of `length` bytes at `offset`, as a range: none for no bytes, else
// calls of kCallBytesMax and a rest. For `write` and `append` make one for each of COUNT. An append
// asks for the size of the file first, also when it then writes nothing.
class WriteCalls {
 public:
  class iterator {
   public:
    using value_type = IoCall;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(std::uint64_t offset, std::uint64_t left) : offset_(offset), left_(left) {}
    IoCall operator*() const { return {offset_, std::min(left_, kCallBytesMax)}; }
    iterator& operator++() {
      const std::uint64_t done = std::min(left_, kCallBytesMax);
      offset_ += done;
      left_ -= done;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.left_ == 0; }

   private:
    std::uint64_t offset_ = 0, left_ = 0;
  };

  explicit WriteCalls(IoCall write) : write_(write) {}
  iterator begin() const { return {write_.offset, write_.length}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  IoCall write_;
};

// Read call number `index` (from 0) of `read PATH OFF LEN COUNT`: calls are LEN apart, and none
// reads more than kCallBytesMax. A call of no bytes is made.
inline IoCall read_call(IoCall first, std::uint64_t index) {
  return {first.offset + index * first.length, std::min(first.length, kCallBytesMax)};
}

// What `writemagic` puts into `out`, which lies at `out_offset` in the file and inside `write`: the
// pattern of `seed`, but the journal's magic number at each multiple of 1024 from the start of the
// write where its four bytes fit.
inline void fill_magic(std::uint32_t seed, IoCall write, std::uint64_t out_offset,
                       MutableByteSpan out) {
  constexpr std::byte kMagic[4] = {std::byte{0xC0}, std::byte{0x3B}, std::byte{0x39},
                                   std::byte{0x98}};
  fill_pattern(seed, out_offset, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t from_start = out_offset - write.offset + i;
    const std::uint64_t within = from_start % 1024;
    if (within < 4 && from_start - within + 4 <= write.length) out[i] = kMagic[within];
  }
}

}  // namespace jbdlab::workloads
