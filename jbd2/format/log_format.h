#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/ids.h"
#include "jbd2/format/features.h"
#include "jbd2/format/superblock.h"

namespace jbdlab::jbd2 {

// Where the fields of a descriptor's tag lie: one of five forms, chosen once from the feature bits
// (journal-format.md, section 5.1). The two bytes by which v2 tags are longer than their fields are
// the kernel's own (journal_tag_bytes(), fs/jbd2/journal.c).
//
//   form           size   0          4              6          8            12
//   32 bit            8   u32 block  u16 0          u16 flags
//   64 bit           12   u32 block  u16 0          u16 flags  u32 block high
//   32 bit, v2       10   u32 block  u16 checksum   u16 flags  2 unused
//   64 bit, v2       14   u32 block  u16 checksum   u16 flags  u32 high     2 unused
//   v3               16   u32 block  u32 flags                 u32 high     u32 checksum
// In v3 without 64 bit the high word is there and ignored.
struct TagLayout {
  enum class Checksum : std::uint8_t { none, low16, full32 };

  std::uint8_t size = 8;
  bool has_high = false;
  bool wide_flags = false;  // flags are a u32 at 4 rather than a u16 at 6
  Checksum checksum = Checksum::none;

  static constexpr TagLayout of(ChecksumMode mode, bool is_64bit) noexcept {
    using enum Checksum;
    if (mode == ChecksumMode::v3) return {16, is_64bit, true, full32};
    if (mode == ChecksumMode::v2) {
      return {static_cast<std::uint8_t>(is_64bit ? 14 : 10), is_64bit, false, low16};
    }
    return {static_cast<std::uint8_t>(is_64bit ? 12 : 8), is_64bit, false, none};
  }
  friend constexpr bool operator==(const TagLayout&, const TagLayout&) = default;
};

// Everything that the feature bits of a superblock decide about the bytes of the log, as values:
// whoever parses or builds a block asks this struct and no feature bit.
struct LogFormat {
  std::uint32_t block_size = 4096;
  ChecksumMode checksums = ChecksumMode::none;
  bool is_64bit = false;
  bool async_commit = false;
  std::uint32_t seed = 0;  // of every v2/v3 checksum: crc32c(~0, journal uuid)
  TagLayout tag;

  static LogFormat of(const LogSuperblock& superblock) noexcept;
  static LogFormat make(std::uint32_t block_size, ChecksumMode checksums, bool is_64bit,
                        const Uuid& uuid, bool async_commit = false) noexcept;

  // True if control and data blocks each have a checksum (v2 and v3).
  constexpr bool has_block_checksums() const noexcept {
    return checksums == ChecksumMode::v2 || checksums == ChecksumMode::v3;
  }
  // Bytes at the end of descriptor and revoke blocks that hold their checksum.
  constexpr std::uint32_t tail_size() const noexcept { return has_block_checksums() ? 4 : 0; }
  constexpr std::uint32_t revoke_record_size() const noexcept { return is_64bit ? 8 : 4; }

  friend bool operator==(const LogFormat&, const LogFormat&) = default;
};

}  // namespace jbdlab::jbd2
