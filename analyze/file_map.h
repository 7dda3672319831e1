#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/ext4_inode.h"
#include "analyze/image.h"
#include "base/ids.h"
#include "base/result.h"

namespace jbdlab::analyze {

// A piece of a file that lies in one piece on the disk.
struct FileRun {
  LogicalBlock first;
  FsBlock fs_block;
  std::uint32_t count = 0;
};

// Where the blocks of a file are: runs in ascending order of `first`, disjoint; what none covers is
// a hole (or unwritten).
class FileMap {
 public:
  // Walks the extents or the block map of `inode`. Bounded in time and memory whatever the disk
  // says: kNodesMax tree blocks, kRunsMax runs, blocks of the file only. Errors: invalid (a tree
  // that no ext4 makes, blocks outside the file system), and those of Image::read_blocks().
  static Result<FileMap> of(Image& image, const Ext4Inode& inode);
  static constexpr std::size_t kNodesMax = 65'536;
  static constexpr std::size_t kRunsMax = 1U << 20;

  const std::vector<FileRun>& runs() const noexcept { return runs_; }
  // Blocks of the file by its size, mapped or not; a size beyond 2^32 - 1 blocks counts as that.
  std::uint32_t block_count() const noexcept { return block_count_; }
  std::uint64_t mapped_count() const noexcept;

  // The run that covers `block`, or nullptr.
  const FileRun* find(LogicalBlock block) const noexcept;

 private:
  friend class FileMapBuilder;
  std::vector<FileRun> runs_;
  std::uint32_t block_count_ = 0;
};

// One node of an extent tree, wherever it lies (struct ext4_extent_header, fs/ext4/ext4_extents.h).
struct ExtentEntry {
  LogicalBlock first;
  std::uint32_t count = 0;  // leaf: blocks
  bool unwritten = false;   // leaf
  FsBlock fs_block;         // leaf: of the data; else of the child
};
struct ExtentNode {
  std::uint16_t depth = 0;  // 0: leaf
  std::vector<ExtentEntry> entries;
};
// Errors: bad_magic (no node), invalid (more entries than room, or a depth that ext4 never has).
Result<ExtentNode> parse_extent_node(ByteSpan bytes);

}  // namespace jbdlab::analyze
