#pragma once

#include <cstdint>

#include "base/ids.h"
#include "jbd2/format/superblock.h"

namespace jbdlab::jbd2 {

// The parts of a journal: the ring of log blocks and, behind it, the fast-commit area.
//
// With fast commits, let last = maxlen - fast_commit_blocks. The ring is [first, last), block
// `last` is never used, and the area is [last + 1, maxlen): one usable block less than its length
// (jbd2_journal_initialize_fast_commit in fs/jbd2/journal.c). Without, the ring is
// [first, maxlen) and the area is empty.
class Geometry {
 public:
  // Preconditions (check_superblock() tells): first < end of the ring, area inside the journal.
  static Geometry of(const LogSuperblock& superblock);
  // A ring [first, end) and the area behind it, for tests and for journals that do not exist yet.
  Geometry(LogBlock first, LogBlock end, LogBlock fast_commit_first, LogBlock fast_commit_end);

  LogBlock first() const noexcept { return first_; }
  LogBlock end() const noexcept { return end_; }  // one behind the last block of the ring
  std::uint32_t count() const noexcept { return end_.value() - first_.value(); }
  bool contains(LogBlock b) const noexcept { return first_ <= b && b < end_; }

  // Ring arithmetic; `b` is in the ring.
  LogBlock next(LogBlock b) const noexcept {
    return b.value() + 1 == end_.value() ? first_ : LogBlock{b.value() + 1};
  }
  LogBlock advance(LogBlock b, std::uint32_t blocks) const noexcept;
  // How many next() lead from `from` to `to`: 0 to count() - 1.
  std::uint32_t distance(LogBlock from, LogBlock to) const noexcept;

  LogBlock fast_commit_first() const noexcept { return fast_commit_first_; }
  LogBlock fast_commit_end() const noexcept { return fast_commit_end_; }
  std::uint32_t fast_commit_count() const noexcept {  // usable blocks
    return fast_commit_end_.value() - fast_commit_first_.value();
  }

  friend bool operator==(const Geometry&, const Geometry&) = default;

 private:
  LogBlock first_, end_, fast_commit_first_, fast_commit_end_;
};

}  // namespace jbdlab::jbd2
