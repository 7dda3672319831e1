#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/format/features.h"
#include "jbd2/format/header.h"

namespace jbdlab::jbd2 {

using Uuid = std::array<std::byte, 16>;

// The journal superblock: where the log begins, which tid is expected there, and how to read it.
//
// Holds a copy of the 1024 bytes on disk, so that whoever changes one field and writes it back
// keeps every byte that it does not know (padding, s_users). A version 1 superblock has no fields
// from 0x24 on: features() is then empty, whatever the bytes say.
//
// Layout (big-endian; struct journal_superblock_s in include/linux/jbd2.h):
//   0x00 header (type 3 = version 1, 4 = version 2)
//   0x0C u32 block size    0x10 u32 maxlen   0x14 u32 first
//   0x18 u32 sequence      0x1C u32 start    0x20 i32 errno
//   0x24 u32 feature compat   0x28 u32 incompat   0x2C u32 ro_compat
//   0x30 u8[16] uuid       0x40 u32 nr_users  0x44 u32 dynsuper
//   0x48 u32 max_transaction  0x4C u32 max_trans_data
//   0x50 u8 checksum type  0x54 u32 num_fc_blks  0x58 u32 head
//   0xFC u32 checksum      0x100 u8[48][16] users
class LogSuperblock {
 public:
  static constexpr std::size_t kSize = 1024;
  static constexpr std::uint8_t kChecksumTypeCrc32c = 4;
  static constexpr std::uint32_t kDefaultFastCommitBlocks = 256;
  static constexpr std::uint32_t kMinLogBlocks = 1024;  // without fast-commit blocks

  // What mke2fs writes for a new journal: version 2, sequence 1, start 0, no features.
  struct New {
    std::uint32_t block_size = 4096;
    std::uint32_t block_count = 1024;  // s_maxlen
    LogBlock first{1};
    Uuid uuid{};
    std::uint32_t fast_commit_blocks = 0;
  };
  static LogSuperblock create(const New& n);

  // Copies the first kSize bytes of `block`. Errors: truncated; bad_magic (the magic or the type
  // of the header is not a journal superblock's). Values are not judged: see check_superblock().
  static Result<LogSuperblock> parse(ByteSpan block);
  // The bytes to write; update_checksum() first after a change.
  std::span<const std::byte, kSize> bytes() const noexcept { return raw_; }
  // Copies bytes() to the front of `block`; the rest of the block stays.
  void build(MutableByteSpan block) const;

  std::uint32_t version() const noexcept;  // 1 or 2
  std::uint32_t block_size() const noexcept { return be<std::uint32_t, 0x0C>(view()); }
  // All blocks of the journal: block 0 (or, on a device of its own, everything before the
  // superblock, too), the ring and the fast-commit area.
  std::uint32_t block_count() const noexcept { return be<std::uint32_t, 0x10>(view()); }
  LogBlock first() const noexcept { return LogBlock{be<std::uint32_t, 0x14>(view())}; }
  // The tid expected at start(); if the log is empty, the next mount begins with the tid after it.
  Tid sequence() const noexcept { return Tid{be<std::uint32_t, 0x18>(view())}; }
  // Where the oldest transaction that may need replay begins; 0: the log is empty.
  LogBlock start() const noexcept { return LogBlock{be<std::uint32_t, 0x1C>(view())}; }
  bool empty() const noexcept { return start() == LogBlock{0}; }
  std::int32_t errno_value() const noexcept;  // of the abort that stopped the journal, e.g. -5
  Features features() const noexcept;
  Uuid uuid() const noexcept;
  std::uint32_t user_count() const noexcept { return be<std::uint32_t, 0x40>(view()); }
  Uuid user(std::size_t index) const;  // index < 48
  std::uint8_t checksum_type() const noexcept { return be<std::uint8_t, 0x50>(view()); }
  // s_num_fc_blks as stored; 0 means kDefaultFastCommitBlocks once the feature is on.
  std::uint32_t stored_fast_commit_blocks() const noexcept {
    return be<std::uint32_t, 0x54>(view());
  }
  // Length of the fast-commit area: 0 without the feature.
  std::uint32_t fast_commit_blocks() const noexcept;
  // Where the log goes on after a clean unmount (kernel 6.4 and later; 0 if never written).
  LogBlock head() const noexcept { return LogBlock{be<std::uint32_t, 0x58>(view())}; }
  std::uint32_t checksum() const noexcept { return be<std::uint32_t, 0xFC>(view()); }

  // True if checksums v2 or v3 are on, so that the superblock carries one, too.
  bool has_checksum() const noexcept;
  bool checksum_ok() const noexcept;  // true also if there is none

  void set_block_count(std::uint32_t n) noexcept;
  void set_first(LogBlock b) noexcept;
  void set_sequence(Tid tid) noexcept;
  void set_start(LogBlock b) noexcept;
  void set_errno(std::int32_t value) noexcept;
  void set_features(Features f) noexcept;  // and the checksum type that they ask for
  void set_uuid(const Uuid& uuid) noexcept;
  void set_user(std::size_t index, const Uuid& uuid);  // index < 48; does not touch nr_users
  void set_user_count(std::uint32_t n) noexcept;
  void set_stored_fast_commit_blocks(std::uint32_t n) noexcept;
  void set_head(LogBlock b) noexcept;
  // Stores the checksum if the features ask for one, and leaves the field alone otherwise.
  void update_checksum() noexcept;

  friend bool operator==(const LogSuperblock&, const LogSuperblock&) = default;

 private:
  LogSuperblock() noexcept = default;
  std::span<const std::byte, kSize> view() const noexcept { return raw_; }
  std::span<std::byte, kSize> edit() noexcept { return raw_; }

  std::array<std::byte, kSize> raw_{};
};

}  // namespace jbdlab::jbd2
