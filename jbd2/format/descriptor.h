#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/format/log_format.h"

namespace jbdlab::jbd2 {

namespace tag_flag {
inline constexpr std::uint32_t kEscape = 1;    // the block began with the magic
inline constexpr std::uint32_t kSameUuid = 2;  // no uuid follows this tag
inline constexpr std::uint32_t kDeleted = 4;   // never written; ignored
inline constexpr std::uint32_t kLastTag = 8;
}  // namespace tag_flag

// One tag of a descriptor block: says where a journaled block belongs.
struct Tag {
  FsBlock fs_block;
  std::uint32_t flags = 0;
  std::uint32_t checksum = 0;  // v3: all of it; v2: the low 16 bits; else 0

  bool escaped() const noexcept { return (flags & tag_flag::kEscape) != 0; }
  friend bool operator==(const Tag&, const Tag&) = default;
};

// The tags of a descriptor block, in log order: the i-th belongs to the i-th block behind it.
//
// Layout: header, then tags of LogFormat::tag from offset 12; a tag without SAME_UUID is followed
// by 16 bytes that nobody uses; the last tag has LAST_TAG, or the block ends; with v2/v3 the last
// four bytes are the checksum (struct journal_block_tag_s in include/linux/jbd2.h).
//
// Replaces the contents of `tags`, whose memory is used again. Errors: truncated (`block` is not
// LogFormat::block_size long), bad_magic (no header, or of another type). Whatever stands in the
// tag area is a list of tags, so damage shows in the checksum and in where the tags point to.
Result<void> parse_descriptor(const LogFormat& format, ByteSpan block, std::vector<Tag>& tags);

// True if `tag` matches `checksum`, a data_checksum(); in layouts without one, always.
bool tag_checksum_matches(const TagLayout& layout, const Tag& tag, std::uint32_t checksum) noexcept;

// Builds a descriptor block in place, one tag at a time, with the kernel's rule for when it is
// full: when less than a tag, a uuid and the tail would be left (jbd2_journal_commit_transaction in
// fs/jbd2/commit.c). Borrows `block` (LogFormat::block_size bytes) and `format`.
class DescriptorBuilder {
 public:
  // Clears the block and writes its header.
  DescriptorBuilder(const LogFormat& format, Tid tid, MutableByteSpan block);

  bool full() const noexcept;
  std::uint32_t count() const noexcept { return count_; }
  // `checksum` is the data_checksum() of the block as logged; layouts without one ignore it.
  // Precondition: not full().
  void add(FsBlock fs_block, bool escaped, std::uint32_t checksum);
  // Marks the last tag and stores the block's checksum. Precondition: count() > 0.
  void finish();

  // How many tags the kernel puts into one descriptor block.
  static std::uint32_t capacity(const LogFormat& format) noexcept;

 private:
  const LogFormat& format_;
  MutableByteSpan block_;
  std::size_t at_;        // where the next tag goes
  std::size_t last_ = 0;  // where the last tag is
  std::uint32_t count_ = 0;
};

}  // namespace jbdlab::jbd2
