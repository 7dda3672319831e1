#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace jbdlab {

// The contents that the op language gives to files (groundtruth FORMAT.md): a function of the path
// (FNV-1a hash `seed`) and the offset in the file.
std::uint32_t pattern_seed(std::string_view path) noexcept;
void fill_pattern(std::uint32_t seed, std::uint64_t file_offset, MutableByteSpan out) noexcept;

// The contents of one block: a shared, immutable value that is cheap to copy, and copied on write.
//
// Three representations, invisible to the reader: all zeros (no memory), a pattern (file data that
// nobody has looked at: the bytes of `seed` at `file_offset`, inside [first, end) of the block, and
// zeros elsewhere), and bytes. Whoever holds a BlockRef sees contents that never change: mutate()
// copies first when the bytes are shared. Reference counts are not atomic: a run has one thread,
// and no two runs share blocks.
class BlockRef {
 public:
  BlockRef() noexcept = default;  // size 0: no block
  static BlockRef zeros(std::uint32_t size) noexcept;
  static BlockRef copy_of(ByteSpan bytes);
  // Bytes of its own that are undefined: for whoever writes all of them, through mutate().
  static BlockRef unset(std::uint32_t size);
  static BlockRef pattern(std::uint32_t size, std::uint32_t seed, std::uint64_t file_offset,
                          std::uint32_t first, std::uint32_t end) noexcept;

  BlockRef(const BlockRef& other) noexcept : BlockRef(other.rep_) { retain(); }
  BlockRef(BlockRef&& other) noexcept : BlockRef(std::exchange(other.rep_, Rep{})) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~BlockRef() { release(); }

  std::uint32_t size() const noexcept { return rep_.size; }
  explicit operator bool() const noexcept { return rep_.size != 0; }
  bool is_zeros() const noexcept { return rep_.kind == Kind::zeros; }

  // The bytes; turns a pattern or zeros into bytes first (which other holders do not notice).
  // Valid until this BlockRef is assigned, mutated or destroyed.
  ByteSpan bytes() const;
  // Copies the contents to `out`, which has size() bytes, without turning a pattern into bytes.
  void copy_to(MutableByteSpan out) const noexcept;
  // Bytes of its own to write to, valid as for bytes(). Never write through it after copying *this.
  MutableByteSpan mutate();

  // Overlays the pattern of `seed` on [first, end): stays a pattern where it can (same seed and
  // offset, touching range), turns to bytes otherwise.
  void overlay_pattern(std::uint32_t seed, std::uint64_t file_offset, std::uint32_t first,
                       std::uint32_t end);

 private:
  enum class Kind : std::uint8_t { none, zeros, pattern, bytes };
  struct Rep {
    std::byte* storage = nullptr;  // Kind::bytes: a reference count, then the bytes
    std::uint64_t file_offset = 0;
    std::uint32_t seed = 0;
    std::uint32_t first = 0, end = 0;
    std::uint32_t size = 0;
    Kind kind = Kind::none;
  };
  explicit BlockRef(const Rep& rep) noexcept : rep_(rep) {}
  void retain() const noexcept;
  void release() noexcept;
  void materialise() const;

  mutable Rep rep_;  // bytes() changes the representation, never the contents
};

}  // namespace jbdlab
