#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/format/log_format.h"

namespace jbdlab::jbd2 {

// The blocks that a revoke block revokes: images of them in this or an older transaction must not
// be replayed.
//
// Layout (big-endian; struct jbd2_journal_revoke_header_s in include/linux/jbd2.h):
//    0 header (type 5)   12 u32 bytes used, header included
//   16 u64[] or u32[] blocks (with and without 64 bit); with v2/v3 the last four bytes of the
//   block are its checksum
//
// Replaces the contents of `blocks`. Errors: truncated, bad_magic, invalid (a byte count that is
// less than the header or reaches beyond the records' space).
Result<void> parse_revoke(const LogFormat& format, ByteSpan block, std::vector<FsBlock>& blocks);

// Builds a revoke block in place. Borrows `block` and `format`.
class RevokeBuilder {
 public:
  RevokeBuilder(const LogFormat& format, Tid tid, MutableByteSpan block);

  bool full() const noexcept;
  std::uint32_t count() const noexcept { return count_; }
  void add(FsBlock fs_block);  // precondition: not full()
  void finish();               // stores the byte count and the block's checksum

  static std::uint32_t capacity(const LogFormat& format) noexcept;

 private:
  const LogFormat& format_;
  MutableByteSpan block_;
  std::size_t at_;
  std::uint32_t count_ = 0;
};

}  // namespace jbdlab::jbd2
