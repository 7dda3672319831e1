#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/block_ref.h"
#include "base/ids.h"

namespace jbdlab::ext4 {

// One block of a file in memory, and what its buffer_head knows of its place on the disk.
struct CachedBlock {
  // delayed    counted against the free space, without a place yet
  // unwritten  has a place that reads as zeros until its extent is converted
  // mapped     has a place: `physical`
  enum class Place : std::uint8_t { delayed, unwritten, mapped };

  BlockRef data;
  FsBlock physical;
  Place place = Place::delayed;
  // The folio that it is part of: a piece of memory that write-back and a bio take as one, a page
  // or, from large writes, more.
  LogicalBlock folio;             // first block
  std::uint32_t folio_count = 1;  // blocks
};

// The blocks of a file that are in memory. Memory is not simulated: nothing is ever evicted.
// (mm/filemap.c, with the buffers of fs/buffer.c.)
// Invariant: `dirty` and `writeback` name blocks that are in `blocks`.
class PageCache {
 public:
  std::map<LogicalBlock, CachedBlock> blocks;
  std::set<LogicalBlock> dirty;      // changed since their last write began
  std::set<LogicalBlock> writeback;  // their write is in flight, or their extent's conversion

  // Null where nothing is in memory.
  CachedBlock* find(LogicalBlock block) {
    const auto at = blocks.find(block);
    return at == blocks.end() ? nullptr : &at->second;
  }
};

}  // namespace jbdlab::ext4
