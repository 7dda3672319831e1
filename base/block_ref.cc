#include "base/block_ref.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/pool.h"

namespace jbdlab {
namespace {

// Storage of Kind::bytes: a count in front of the bytes, which stay 16-byte aligned.
constexpr std::size_t kHeader = 16;

std::byte* allocate(std::uint32_t size) {
  auto* storage = static_cast<std::byte*>(pool::allocate(kHeader + size));
  const std::uint64_t one = 1;
  std::memcpy(storage, &one, sizeof one);
  return storage;
}

std::uint64_t count_of(const std::byte* storage) noexcept {
  std::uint64_t count = 0;
  std::memcpy(&count, storage, sizeof count);
  return count;
}

void set_count(std::byte* storage, std::uint64_t count) noexcept {
  std::memcpy(storage, &count, sizeof count);
}

constexpr std::uint64_t pattern_word(std::uint32_t seed, std::uint64_t word_index) noexcept {
  std::uint64_t w = (word_index + (std::uint64_t{seed} << 32)) * 0x9E37'79B9'7F4A'7C15U;
  return w ^ (w >> 29);
}

}  // namespace

std::uint32_t pattern_seed(std::string_view path) noexcept {
  std::uint32_t hash = 2'166'136'261U;
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
  return hash;
}

void fill_pattern(std::uint32_t seed, std::uint64_t file_offset, MutableByteSpan out) noexcept {
  std::size_t i = 0;
  const auto one_byte = [&] {
    const std::uint64_t at = file_offset + i;
    out[i++] = static_cast<std::byte>(pattern_word(seed, at >> 3) >> ((at & 7) * 8));
  };
  while (i < out.size() && ((file_offset + i) & 7) != 0) one_byte();
  for (; i + 8 <= out.size(); i += 8) {
    const std::uint64_t word = pattern_word(seed, (file_offset + i) >> 3);
    detail::store<std::uint64_t, false>(out.data() + i, word);
  }
  while (i < out.size()) one_byte();
}

BlockRef BlockRef::zeros(std::uint32_t size) noexcept {
  Rep rep;
  rep.size = size;
  rep.kind = Kind::zeros;
  return BlockRef(rep);
}

BlockRef BlockRef::copy_of(ByteSpan bytes) {
  BlockRef block = unset(static_cast<std::uint32_t>(bytes.size()));
  std::memcpy(block.rep_.storage + kHeader, bytes.data(), bytes.size());
  return block;
}

BlockRef BlockRef::unset(std::uint32_t size) {
  Rep rep;
  rep.size = size;
  rep.kind = Kind::bytes;
  rep.storage = allocate(size);
  return BlockRef(rep);
}

BlockRef BlockRef::pattern(std::uint32_t size, std::uint32_t seed, std::uint64_t file_offset,
                           std::uint32_t first, std::uint32_t end) noexcept {
  CHECK(first <= end && end <= size);
  Rep rep;
  rep.size = size;
  rep.kind = Kind::pattern;
  rep.seed = seed;
  rep.file_offset = file_offset;
  rep.first = first;
  rep.end = end;
  return BlockRef(rep);
}

void BlockRef::retain() const noexcept {
  if (rep_.kind == Kind::bytes) set_count(rep_.storage, count_of(rep_.storage) + 1);
}

void BlockRef::release() noexcept {
  if (rep_.kind != Kind::bytes) return;
  const std::uint64_t count = count_of(rep_.storage);
  if (count == 1) {
    pool::release(rep_.storage, kHeader + rep_.size);
  } else {
    set_count(rep_.storage, count - 1);
  }
}

void BlockRef::copy_to(MutableByteSpan out) const noexcept {
  CHECK(out.size() == rep_.size);
  switch (rep_.kind) {
    case Kind::none:
      return;
    case Kind::zeros:
      std::memset(out.data(), 0, out.size());
      return;
    case Kind::bytes:
      std::memcpy(out.data(), rep_.storage + kHeader, out.size());
      return;
    case Kind::pattern:
      std::memset(out.data(), 0, rep_.first);
      fill_pattern(rep_.seed, rep_.file_offset + rep_.first,
                   out.subspan(rep_.first, rep_.end - rep_.first));
      std::memset(out.data() + rep_.end, 0, out.size() - rep_.end);
      return;
  }
}

void BlockRef::materialise() const {
  if (rep_.kind == Kind::bytes || rep_.kind == Kind::none) return;
  std::byte* storage = allocate(rep_.size);
  copy_to({storage + kHeader, rep_.size});
  rep_.storage = storage;
  rep_.kind = Kind::bytes;
}

ByteSpan BlockRef::bytes() const {
  materialise();
  return {rep_.storage == nullptr ? nullptr : rep_.storage + kHeader, rep_.size};
}

MutableByteSpan BlockRef::mutate() {
  CHECK(rep_.kind != Kind::none);
  materialise();
  if (const std::uint64_t count = count_of(rep_.storage); count != 1) {
    // Only the pointer changes: to pass the new block through the stack would wait for the copy.
    std::byte* const own = allocate(rep_.size);
    std::memcpy(own + kHeader, rep_.storage + kHeader, rep_.size);
    set_count(rep_.storage, count - 1);
    rep_.storage = own;
  }
  return {rep_.storage + kHeader, rep_.size};
}

void BlockRef::overlay_pattern(std::uint32_t seed, std::uint64_t file_offset, std::uint32_t first,
                               std::uint32_t end) {
  CHECK(first <= end && end <= rep_.size);
  if (rep_.kind == Kind::zeros) {
    *this = pattern(rep_.size, seed, file_offset, first, end);
    return;
  }
  const bool whole = first == 0 && end == rep_.size;
  if (whole) {
    *this = pattern(rep_.size, seed, file_offset, first, end);
    return;
  }
  if (rep_.kind == Kind::pattern && rep_.seed == seed && rep_.file_offset == file_offset &&
      first <= rep_.end && rep_.first <= end) {
    rep_.first = std::min(rep_.first, first);
    rep_.end = std::max(rep_.end, end);
    return;
  }
  fill_pattern(seed, file_offset + first, mutate().subspan(first, end - first));
}

}  // namespace jbdlab
