#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>

namespace jbdlab {

// A number that means one thing: offers order and equality, and no arithmetic, so that a block of
// the journal is never added to a block of the file system by accident.
template <class Tag, std::unsigned_integral Rep>
class Id {
 public:
  using rep = Rep;
  constexpr Id() noexcept = default;
  constexpr explicit Id(Rep value) noexcept : value_(value) {}
  constexpr Rep value() const noexcept { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

using FsBlock = Id<struct FsBlockTag, std::uint64_t>;  // block of the file system
using LogBlock =
    Id<struct LogBlockTag, std::uint32_t>;             // block of the journal; 0 is its superblock
using Ino = Id<struct InoTag, std::uint32_t>;          // inode number; 0 is none, 2 the root
using GroupNo = Id<struct GroupNoTag, std::uint32_t>;  // block group
using LogicalBlock = Id<struct LogicalBlockTag, std::uint32_t>;  // block of a file

// Transaction id of jbd2. It wraps at 2^32, hence after() and no operator<; 0 is a valid tid.
class Tid {
 public:
  constexpr Tid() noexcept = default;
  constexpr explicit Tid(std::uint32_t value) noexcept : value_(value) {}
  constexpr std::uint32_t value() const noexcept { return value_; }
  constexpr Tid next() const noexcept { return Tid{value_ + 1}; }
  // True if *this is younger than `other` (tid_gt of include/linux/jbd2.h).
  constexpr bool after(Tid other) const noexcept {
    return std::bit_cast<std::int32_t>(value_ - other.value_) > 0;
  }
  friend constexpr bool operator==(Tid, Tid) = default;

 private:
  std::uint32_t value_ = 0;
};
static_assert(Tid{0}.after(Tid{0xffff'ffff}));

}  // namespace jbdlab
