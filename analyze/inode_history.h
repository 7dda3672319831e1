#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/image.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/block_source.h"
#include "jbd2/log_reader.h"

namespace jbdlab::analyze {

// What people want to know of an inode at one moment (struct ext4_inode in fs/ext4/ext4.h, its part
// behind byte 128 included where `i_extra_isize` says that it is there).
struct InodeFacts {
  std::uint16_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint16_t links = 0;
  std::uint64_t sectors = 0;  // of 512 bytes, as stat() tells them
  std::uint32_t flags = 0;
  std::uint32_t generation = 0;
  // Nanoseconds since 1970, before it negative; crtime is there in large inodes only. `dtime`: 0 if
  // the inode is in use (or the next of an orphan list).
  std::int64_t atime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::int64_t mtime_ns = 0;
  std::optional<std::int64_t> crtime_ns;
  std::uint32_t dtime = 0;

  // `block_size`: of the file system, in which a huge file counts. Errors: truncated.
  static Result<InodeFacts> parse(ByteSpan inode, std::uint32_t block_size);
  bool in_use() const noexcept { return mode != 0; }
  friend bool operator==(const InodeFacts&, const InodeFacts&) = default;
};

// Names of the fields in which two versions differ, in the order of the struct.
std::vector<std::string_view> changed_fields(const InodeFacts& before, const InodeFacts& after);

// The inode as one record of the log has it.
struct InodeVersion {
  enum class Source : std::uint8_t {
    transaction,  // a copy of its block of the inode table
    fast_commit,  // an INODE tag
  };
  Source source = Source::transaction;
  Tid tid;
  jbd2::LogState state = jbd2::LogState::replayable;
  std::optional<std::uint64_t> commit_time_ns;  // of a transaction with a commit block
  LogBlock log_block;
  jbd2::Verdict checksum = jbd2::Verdict::none;  // of the copy, or of the fast commit
  InodeFacts facts;
  // Since the version before it in this list; the first has none to be compared with.
  std::vector<std::string_view> changed;
};
std::string_view to_string(InodeVersion::Source source) noexcept;

// One inode through the log: what is on the disk now, and every version in the log, in log order.
// What is on the disk may be older than all of them (nothing was written home yet) or younger.
struct InodeHistory {
  Ino ino;
  std::optional<InodeFacts> on_disk;  // nothing: it cannot be read
  std::vector<InodeVersion> versions;
};

// Precondition: `ino` is an inode of `image`, and BlockKinds::inode_table_block() of it is
// `table_block`. Versions that cannot be read are left out.
InodeHistory inode_history(Image& image, Ino ino, FsBlock table_block, const jbd2::LogContents& log,
                           jbd2::BlockSource& journal);

}  // namespace jbdlab::analyze
