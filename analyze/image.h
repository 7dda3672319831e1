#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analyze/byte_source.h"
#include "analyze/ext4_inode.h"
#include "analyze/ext4_superblock.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/finding.h"

struct struct_ext2_filsys;  // NOLINT(readability-identifier-naming): libext2fs calls it so

namespace jbdlab::analyze {

// Where the metadata of one block group lies.
struct GroupDescriptor {
  FsBlock block_bitmap;
  FsBlock inode_bitmap;
  FsBlock inode_table;
};

// The copies of superblock and group descriptors that a group holds; empty ranges where it holds
// none.
struct GroupCopies {
  std::optional<FsBlock> superblock;
  FsBlock descriptors_first, descriptors_end;  // with the blocks reserved for growth
};

// An ext2, ext3 or ext4 file system, read and never written. Opened through libext2fs with a
// channel of ours that knows no write; features that nobody knows, a wrong checksum or a missing
// end do not keep it from being read (they are findings), sizes that cannot be computed with do.
//
// Memory does not depend on the size of the file system: group descriptors and inodes are read when
// they are asked for.
class Image {
 public:
  // Errors: whatever ByteSource says; bad_magic (no ext4), unsupported (a journal device),
  // invalid (an impossible superblock).
  static Result<std::unique_ptr<Image>> open(std::unique_ptr<ByteSource> bytes);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  const Ext4Superblock& superblock() const noexcept { return superblock_; }
  std::uint32_t block_size() const noexcept { return superblock_.block_size(); }
  std::uint64_t block_count() const noexcept { return superblock_.block_count(); }
  ByteSource& bytes() noexcept { return *bytes_; }
  // What open() found.
  const std::vector<jbd2::Finding>& findings() const noexcept { return findings_; }

  // Fills `out` with whole blocks from `block` on. Errors: not_found (beyond the file system),
  // truncated (beyond the end of the image), io.
  Result<void> read_blocks(FsBlock block, MutableByteSpan out);
  // Errors: not_found (no such group or inode), and those of read_blocks().
  Result<GroupDescriptor> group(GroupNo group);
  Result<Ext4Inode> inode(Ino ino);
  // Precondition: group < group_count().
  GroupCopies group_copies(GroupNo group) const;

 private:
  Image(std::unique_ptr<ByteSource> bytes, const Ext4Superblock& superblock,
        struct_ext2_filsys* fs) noexcept;
  FsBlock descriptor_block(std::uint32_t index) const;

  std::unique_ptr<ByteSource> bytes_;
  Ext4Superblock superblock_;
  struct_ext2_filsys* fs_;  // owned
  std::vector<jbd2::Finding> findings_;
  std::vector<std::byte> descriptors_;              // one block of them,
  std::optional<std::uint32_t> descriptors_index_;  // and which
};

}  // namespace jbdlab::analyze
