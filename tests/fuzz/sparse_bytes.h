#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/bytes.h"

namespace jbdlab::test {

// A large image that is zero but for a few places, as a fuzzer can hold and change it:
//
//    0 u8 options, of whoever reads the image     1 u8 size in units of 512 KiB
//    2 records, little-endian: u32 offset, u16 length, then so many bytes
//
// What does not fit (a record behind the end, a cut-off one) ends the list. Never more memory than
// some times the input. tests/tools/sparse.cc packs an image into this form.
class SparseBytes {
 public:
  static constexpr std::size_t kHeaderSize = 2;
  static constexpr std::size_t kRecordHeaderSize = 6;
  static constexpr std::uint64_t kSizeUnit = 512 * 1024;

  explicit SparseBytes(ByteSpan input) {
    if (input.size() < kHeaderSize) {
      return;
    }
    options_ = get_le<std::uint8_t>(input, 0);
    size_ = kSizeUnit * get_le<std::uint8_t>(input, 1);
    input = input.subspan(kHeaderSize);
    while (input.size() > kRecordHeaderSize) {
      const std::uint64_t offset = get_le<std::uint32_t>(input, 0);
      const std::size_t length = get_le<std::uint16_t>(input, 4);
      input = input.subspan(kRecordHeaderSize);
      if (length > input.size() || offset + length > size_) {
        break;
      }
      write(offset, input.first(length));
      input = input.subspan(length);
    }
  }

  std::uint8_t options() const noexcept { return options_; }
  std::uint64_t size() const noexcept { return size_; }

  // Precondition: the range lies inside size().
  void read(std::uint64_t offset, MutableByteSpan out) const {
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t at = offset + done;
      const auto within = static_cast<std::size_t>(at % kPage);
      const std::size_t count = std::min(out.size() - done, kPage - within);
      const auto to = out.subspan(done, count);
      if (const auto page = pages_.find(at / kPage); page != pages_.end()) {
        const auto from = ByteSpan{page->second}.subspan(within, count);
        std::copy(from.begin(), from.end(), to.begin());
      } else {
        std::fill(to.begin(), to.end(), std::byte{0});
      }
      done += count;
    }
  }

  // Precondition: the range lies inside size().
  void write(std::uint64_t offset, ByteSpan bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const std::uint64_t at = offset + done;
      const auto within = static_cast<std::size_t>(at % kPage);
      const std::size_t count = std::min(bytes.size() - done, kPage - within);
      const auto from = bytes.subspan(done, count);
      std::copy(from.begin(), from.end(),
                pages_[at / kPage].begin() + static_cast<std::ptrdiff_t>(within));
      done += count;
    }
  }

  // Offsets of the pieces of `size` bytes (a divisor of 4096, or a multiple) that a record touched.
  std::vector<std::uint64_t> touched(std::uint64_t size) const {
    std::vector<std::uint64_t> offsets;
    for (const auto& [page, bytes] : pages_) {
      for (std::uint64_t at = page * kPage / size * size; at < (page + 1) * kPage; at += size) {
        if ((offsets.empty() || offsets.back() < at) && at + size <= size_) {
          offsets.push_back(at);
        }
      }
    }
    return offsets;
  }

 private:
  static constexpr std::size_t kPage = 4096;

  std::uint8_t options_ = 0;
  std::uint64_t size_ = 0;
  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;
};

}  // namespace jbdlab::test
