#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/format/log_format.h"

namespace jbdlab::jbd2 {

// When a transaction was committed, as its commit block says.
struct CommitTime {
  std::uint64_t seconds = 0;
  std::uint32_t nanoseconds = 0;

  // Nanoseconds since 1970. debugfs (journal_write of e2fsprogs 1.47) stores the seconds in the
  // upper half of their field; that is undone here, and here only: the scan compares `seconds`
  // as they stand, as the kernel does. Saturates.
  std::uint64_t since_epoch_ns() const noexcept;
  friend constexpr bool operator==(CommitTime, CommitTime) = default;
};

// The commit block: the record that makes a transaction durable.
//
// Layout (big-endian; struct commit_header in include/linux/jbd2.h):
//    0 header (type 2)   12 u8 checksum type   13 u8 checksum size   14 padding
//   16 u32 checksum[8], of which [0] is used   48 u64 seconds   56 u32 nanoseconds
class CommitBlock {
 public:
  static constexpr std::size_t kSize = 60;
  static constexpr std::uint8_t kChecksumTypeCrc32 = 1;  // v1; with v2/v3 type and size are 0
  static constexpr std::uint8_t kChecksumSizeCrc32 = 4;

  // Borrows `block`, which must outlive the view. Checks size, magic and type; the checksum is
  // csum.h's business. Errors: truncated, bad_magic.
  static Result<CommitBlock> parse(ByteSpan block);

  Tid tid() const noexcept { return Tid{be<std::uint32_t, 8>(raw_)}; }
  std::uint8_t checksum_type() const noexcept { return be<std::uint8_t, 12>(raw_); }
  std::uint8_t checksum_size() const noexcept { return be<std::uint8_t, 13>(raw_); }
  std::uint32_t checksum() const noexcept { return be<std::uint32_t, 16>(raw_); }
  CommitTime time() const noexcept {
    return {be<std::uint64_t, 48>(raw_), be<std::uint32_t, 56>(raw_)};
  }

 private:
  explicit CommitBlock(std::span<const std::byte, kSize> raw) noexcept : raw_(raw) {}
  std::span<const std::byte, kSize> raw_;
};

// Writes a whole commit block. `transaction_checksum` is the running sum of v1
// (add_to_transaction_checksum); other modes ignore it.
void build_commit(const LogFormat& format, Tid tid, CommitTime time,
                  std::uint32_t transaction_checksum, MutableByteSpan block);

}  // namespace jbdlab::jbd2
