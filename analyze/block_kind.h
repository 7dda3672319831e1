#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "analyze/image.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "jbd2/block_source.h"
#include "jbd2/log_reader.h"

namespace jbdlab::analyze {

// What a block of the file system is for.
enum class BlockKind : std::uint8_t {
  super,  // the superblock or a copy
  gdt,    // group descriptors, a copy of them, or a block reserved for them
  block_bitmap,
  inode_bitmap,
  inode_table,
  dir,
  extent,  // maps blocks of a file: a node of an extent tree, or an indirect block
  xattr,
  orphan_file,
  data,  // contents of a file (data=journal, quota files, long symbolic links)
  unknown,
};
inline constexpr std::size_t kBlockKindCount = 11;
std::string_view to_string(BlockKind kind) noexcept;

// What the bytes of a block look like by themselves: dir, extent, xattr, orphan_file or unknown.
struct ContentGuess {
  BlockKind kind = BlockKind::unknown;
  bool sure = false;  // more than an empty frame of its kind
};
ContentGuess guess_content(ByteSpan block, std::optional<std::uint32_t> inode_count);

// Tells the kind of every block in a log: by the geometry of the file system where that says it;
// else by the journaled copy itself and by what the inodes say, those in the log before those on
// the disk. Memory grows with the number of different blocks in the log, not with the file system.
class BlockKinds {
 public:
  // Reads group descriptors and inodes of `image` (null: only contents are looked at), and the
  // copies of inodes and of mapping blocks in the log. Borrows all three.
  BlockKinds(Image* image, const jbd2::LogContents& log, jbd2::BlockSource& journal);

  BlockKind of(const jbd2::LoggedBlock& logged);

  // The block of the inode table that holds `ino`.
  static std::optional<FsBlock> inode_table_block(Image& image, Ino ino);

 private:
  enum Claim : std::uint8_t {  // what inodes say of a block; bits
    kDir = 1,
    kExtent = 2,
    kXattr = 4,
    kOrphanFile = 8,
    kData = 16,
    kMapped = 32,  // of a file whose type is not known
  };
  struct Known {
    FsBlock fs_block;
    const jbd2::LoggedBlock* last = nullptr;  // its youngest copy in the log,
    std::uint32_t order = 0;                  // and how many copies of any block come before that
    BlockKind geometry = BlockKind::unknown;
    std::uint8_t claims = 0;
  };

  Known* find(FsBlock block) noexcept;
  void collect();
  void learn_copies();
  void learn_groups();
  void learn_inodes();
  void learn_special_files();
  void learn_inode(const Ext4Inode& inode);
  void learn_extents(ByteSpan node, Claim claim);
  void learn_indirect(FsBlock block, unsigned levels, Claim claim);
  // Those of known_ that lie in the range; no more of them in all than a sound disk could want.
  template <class Visit>
  void visit(FsBlock first, std::uint64_t count, Visit visit_known);
  void claim(FsBlock first, std::uint64_t count, Claim claim);
  void set_geometry(FsBlock first, std::uint64_t count, BlockKind kind);
  // The journaled copy as it was before escaping; empty if it cannot be read.
  ByteSpan copy_of(const jbd2::LoggedBlock& logged);
  // Youngest copy in the log, else what is on the disk; empty if neither, or read before.
  std::vector<std::byte> first_look_at(FsBlock block);

  Image* image_;
  const jbd2::LogContents& log_;
  jbd2::BlockSource& journal_;
  std::vector<Known> known_;  // sorted by fs_block
  std::set<FsBlock> looked_at_;
  std::uint64_t visits_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace jbdlab::analyze
