#include "jbd2/format/geometry.h"

#include "base/check.h"

namespace jbdlab::jbd2 {

Geometry Geometry::of(const LogSuperblock& superblock) {
  const LogBlock maxlen{superblock.block_count()};
  const std::uint32_t area = superblock.fast_commit_blocks();
  if (area == 0) return {superblock.first(), maxlen, maxlen, maxlen};
  CHECK(area < maxlen.value());
  const LogBlock last{maxlen.value() - area};
  return {superblock.first(), last, LogBlock{last.value() + 1}, maxlen};
}

Geometry::Geometry(LogBlock first, LogBlock end, LogBlock fast_commit_first,
                   LogBlock fast_commit_end)
    : first_(first),
      end_(end),
      fast_commit_first_(fast_commit_first),
      fast_commit_end_(fast_commit_end) {
  CHECK(first_ < end_);
  CHECK(fast_commit_first_ <= fast_commit_end_);
}

LogBlock Geometry::advance(LogBlock b, std::uint32_t blocks) const noexcept {
  const std::uint64_t offset = std::uint64_t{b.value()} - first_.value() + blocks;
  return LogBlock{first_.value() + static_cast<std::uint32_t>(offset % count())};
}

std::uint32_t Geometry::distance(LogBlock from, LogBlock to) const noexcept {
  return to >= from ? to.value() - from.value() : count() - (from.value() - to.value());
}

}  // namespace jbdlab::jbd2
