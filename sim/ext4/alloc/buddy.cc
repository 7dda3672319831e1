#include "sim/ext4/alloc/buddy.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace jbdlab::ext4 {

Buddy::Buddy(std::uint32_t block_bits, std::uint32_t blocks)
    : orders_(block_bits + 2), blocks_(blocks), bitmap_bits_(8U << block_bits), counts_(orders_) {
  CHECK(blocks <= bitmap_bits_);
  std::uint32_t words = 0;
  for (std::uint32_t order = 0; order < orders_; ++order) {
    offsets_.push_back(words);
    words += ((bitmap_bits_ >> order) + 63) / 64;
  }
  bits_.resize(words);
  first_free_ = blocks_;
}

void Buddy::build(ByteSpan bitmap) {
  CHECK(bitmap.size() * 8 >= bitmap_bits_);
  std::ranges::fill(bits_, 0);
  std::ranges::fill(counts_, 0);
  free_ = fragments_ = 0;
  for (std::uint32_t i = 0; i < (blocks_ + 63) / 64; ++i) {
    bits_[i] = ~get_le<std::uint64_t>(bitmap, std::size_t{i} * 8);
  }
  if (const std::uint32_t rest = blocks_ % 64; rest != 0) {
    bits_[blocks_ / 64] &= (std::uint64_t{1} << rest) - 1;
  }
  first_free_ = next_free(0);
  for (std::uint32_t start = first_free_; start < blocks_;) {
    const std::uint32_t end = next_used(start);
    ++fragments_;
    free_ += end - start;
    add_pieces(start, end - start);
    start = next_free(end);
  }
}

std::optional<std::uint32_t> Buddy::largest_order() const noexcept {
  for (std::uint32_t order = orders_; order-- > 0;) {
    if (counts_[order] > 0) return order;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Buddy::lowest_buddy(std::uint32_t order) const noexcept {
  if (order >= orders_ || counts_[order] == 0) return std::nullopt;
  if (order == 0) {
    // A free block whose partner is used; rare enough to look at one run after the other.
    for (std::uint32_t start = next_free(first_free_); start < blocks_;) {
      const std::uint32_t end = next_used(start);
      if ((start & 1) != 0) return start;
      if ((end & 1) != 0) return end - 1;
      start = next_free(end);
    }
    return std::nullopt;
  }
  const std::uint32_t begin = offsets_[order];
  const std::uint32_t words = ((bitmap_bits_ >> order) + 63) / 64;
  for (std::uint32_t i = 0; i < words; ++i) {
    if (const std::uint64_t w = bits_[begin + i]; w != 0) {
      return (i * 64 + static_cast<std::uint32_t>(std::countr_zero(w))) << order;
    }
  }
  return std::nullopt;
}

std::uint32_t Buddy::find(std::uint32_t from, std::uint64_t flip) const noexcept {
  if (from >= blocks_) return blocks_;
  const std::uint32_t words = (blocks_ + 63) / 64;
  std::uint32_t i = from / 64;
  std::uint64_t w = (bits_[i] ^ flip) & (~std::uint64_t{0} << (from % 64));
  while (w == 0) {
    if (++i == words) return blocks_;
    w = bits_[i] ^ flip;
  }
  return std::min(blocks_, i * 64 + static_cast<std::uint32_t>(std::countr_zero(w)));
}

std::uint32_t Buddy::next_free(std::uint32_t from) const noexcept { return find(from, 0); }

std::uint32_t Buddy::next_used(std::uint32_t from) const noexcept {
  return find(from, ~std::uint64_t{0});
}

void Buddy::put(std::uint32_t order, std::uint32_t index) noexcept {
  ++counts_[order];
  if (order > 0) word(order, index) |= std::uint64_t{1} << (index % 64);
}

void Buddy::drop(std::uint32_t order, std::uint32_t index) noexcept {
  --counts_[order];
  if (order > 0) word(order, index) &= ~(std::uint64_t{1} << (index % 64));
}

// Order of the buddy that the free block `block` belongs to.
std::uint32_t Buddy::order_of(std::uint32_t block) const noexcept {
  for (std::uint32_t order = 1; order < orders_; ++order) {
    if (test(order, block >> order)) return order;
  }
  return 0;
}

// Cuts [start, start + len) into buddies: from the left, the largest that alignment and length
// allow.
void Buddy::add_pieces(std::uint32_t start, std::uint32_t len) noexcept {
  while (len > 0) {
    const auto aligned = static_cast<std::uint32_t>(
        std::min(start == 0 ? 31 : std::countr_zero(start), static_cast<int>(orders_) - 1));
    const std::uint32_t order =
        std::min(aligned, static_cast<std::uint32_t>(std::bit_width(len)) - 1);
    put(order, start >> order);
    start += 1U << order;
    len -= 1U << order;
  }
}

void Buddy::fill(std::uint32_t start, std::uint32_t len, bool free) noexcept {
  while (len > 0) {
    const std::uint32_t shift = start % 64;
    const std::uint32_t n = std::min(64 - shift, len);
    const std::uint64_t mask = (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << shift;
    if (free) {
      bits_[start / 64] |= mask;
    } else {
      bits_[start / 64] &= ~mask;
    }
    start += n;
    len -= n;
  }
}

GroupRun Buddy::find_extent(std::uint32_t block, std::uint32_t needed) const noexcept {
  if (!is_free(block)) return {};
  const std::uint32_t first_order = order_of(block);
  std::uint32_t end = ((block >> first_order) + 1) << first_order;
  while (end - block < needed && is_free(end)) end += 1U << order_of(end);
  return {block, end - block};
}

void Buddy::mark_used(std::uint32_t start, std::uint32_t len) {
  CHECK(len > 0);
  CHECK(start < blocks_ && len <= blocks_ - start);
  CHECK(next_used(start) >= start + len);
  const std::uint32_t end = start + len;
  free_ -= len;
  if (first_free_ == start) first_free_ += len;
  const bool left_free = start > 0 && is_free(start - 1);
  const bool right_free = is_free(end);
  if (left_free && right_free) ++fragments_;
  if (!left_free && !right_free) --fragments_;
  for (std::uint32_t at = start; at < end;) {
    const std::uint32_t order = order_of(at);
    const std::uint32_t first = (at >> order) << order;
    const std::uint32_t last_end = first + (1U << order);
    drop(order, at >> order);
    // What the buddy has outside of the run stays free, as smaller buddies.
    if (at > first) add_pieces(first, at - first);
    if (last_end > end) add_pieces(end, last_end - end);
    at = last_end;
  }
  fill(start, len, false);
}

void Buddy::mark_free(std::uint32_t start, std::uint32_t len) {
  CHECK(len > 0);
  CHECK(start < blocks_ && len <= blocks_ - start);
  CHECK(next_free(start) >= start + len);
  const bool left_free = start > 0 && is_free(start - 1);
  const bool right_free = is_free(start + len);
  fill(start, len, true);
  free_ += len;
  first_free_ = std::min(first_free_, start);
  if (left_free && right_free) --fragments_;
  if (!left_free && !right_free) ++fragments_;
  // Level by level: [lo, hi] are free units of this order that no buddy stands for yet. A unit at
  // the border either joins its free partner, and both go up, or becomes a buddy here.
  std::uint32_t lo = start;
  std::uint32_t hi = start + len - 1;
  bool lo_partner = left_free;
  bool hi_partner = right_free;
  for (std::uint32_t order = 0;; ++order) {
    if (order == orders_ - 1) {
      for (std::uint32_t unit = lo; unit <= hi; ++unit) put(order, unit);
      return;
    }
    if (order > 0) {
      lo_partner = (lo & 1) != 0 && test(order, lo - 1);
      hi_partner = (hi & 1) == 0 && test(order, hi + 1);
    }
    // Units of order 0 are single blocks: a free neighbour on the other side of the pair is a buddy
    // of order 0, since its own pair was not complete.
    const bool lo_odd = (lo & 1) != 0;
    const bool hi_even = (hi & 1) == 0;
    if (lo_odd) {
      if (lo_partner) {
        drop(order, --lo);
      } else {
        put(order, lo++);
      }
    }
    if (hi_even) {
      if (hi_partner) {
        drop(order, ++hi);
      } else if (hi >= lo) {
        put(order, hi);
        if (hi == lo) return;
        --hi;
      }
    }
    if (lo > hi) return;
    lo >>= 1;
    hi >>= 1;
  }
}

}  // namespace jbdlab::ext4
