#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/byte_source.h"
#include "analyze/file_map.h"
#include "analyze/image.h"
#include "jbd2/block_source.h"
#include "jbd2/finding.h"
#include "jbd2/log_reader.h"

namespace jbdlab::analyze {

// A journal where it lies on a disk: blocks of the journal, run by run, on blocks of a volume.
// Reads through a window that grows as long as reads follow one another, so that a scan in log
// order takes a few large reads and one that picks single blocks reads no more than these; a block
// that cannot be read does not spoil its neighbours.
class RunBlockSource final : public jbd2::BlockSource {
 public:
  // Borrows the bytes. The runs are a FileMap's: ascending, disjoint.
  RunBlockSource(ByteSource& bytes, std::uint32_t block_size, std::uint32_t block_count,
                 std::vector<FileRun> runs);

  std::uint32_t block_size() const noexcept override { return block_size_; }
  std::uint32_t block_count() const noexcept override { return block_count_; }
  Result<ByteSpan> read(LogBlock block) override;

  const std::vector<FileRun>& runs() const noexcept { return runs_; }

 private:
  static constexpr std::size_t kWindowSize = 262'144;  // at most; fits a second-level cache
  static constexpr std::uint32_t kAheadGrowth = 8;

  ByteSource* bytes_;
  std::uint32_t block_size_;
  std::uint32_t block_count_;
  std::vector<FileRun> runs_;
  std::vector<std::byte> window_;
  std::uint32_t window_first_ = 0;
  std::uint32_t window_count_ = 0;  // blocks in the window; 0: nothing read yet
  std::uint32_t ahead_ = 1;         // blocks to read with the next window
};

enum class JournalKind : std::uint8_t {
  none,    // the file system has no journal
  inode,   // in the journal inode
  device,  // on a device of its own
};
std::string_view to_string(JournalKind kind) noexcept;

// Where a file system says that its journal is.
struct JournalLocation {
  JournalKind kind = JournalKind::none;
  Ino inode;           // kind inode
  Uuid device_uuid{};  // kind device
};
JournalLocation journal_location(const Ext4Superblock& superblock) noexcept;

// The journal in the journal inode, or in the copy of that inode in the superblock if the inode
// cannot be used (a finding). Errors: not_found and invalid, if both cannot.
Result<RunBlockSource> open_inner_journal(Image& image, jbd2::FindingLog& findings);

// A journal on a device of its own: journal blocks are blocks of the device.
struct DeviceJournal {
  RunBlockSource source;
  LogBlock superblock;  // where it is
  Uuid uuid;            // of the device
};
// Errors: bad_magic and invalid (not a journal device).
Result<DeviceJournal> open_device_journal(ByteSource& bytes);

// A bare journal: the contents of a journal inode in a file. Errors: bad_magic, invalid.
Result<RunBlockSource> open_exported_journal(ByteSource& bytes);

}  // namespace jbdlab::analyze
