#pragma once

#include <cstdint>
#include <vector>

#include "base/block_ref.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace jbdlab::jbd2 {

// Where the blocks of a journal come from: a file, an inode of an image, a simulated device.
// Block 0 of the source is block 0 of the journal (of a journal on a device of its own: of the
// device).
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  virtual std::uint32_t block_size() const noexcept = 0;
  virtual std::uint32_t block_count() const noexcept = 0;
  // block_size() bytes, valid until the next read() from this source: a source in memory lends its
  // own bytes, another may use one buffer for all. Errors: truncated (no such block), io.
  virtual Result<ByteSpan> read(LogBlock block) = 0;

 protected:
  BlockSource() = default;
  BlockSource(const BlockSource&) = default;
  BlockSource& operator=(const BlockSource&) = default;
};

// A journal that lies in memory (or in a mapped file) as one piece. Borrows the bytes.
class MemoryBlockSource final : public BlockSource {
 public:
  MemoryBlockSource(ByteSpan bytes, std::uint32_t block_size);

  std::uint32_t block_size() const noexcept override { return block_size_; }
  std::uint32_t block_count() const noexcept override { return block_count_; }
  Result<ByteSpan> read(LogBlock block) override;

 private:
  ByteSpan bytes_;
  std::uint32_t block_size_;
  std::uint32_t block_count_;  // whole blocks only
};

// A journal as a table of shared blocks: what the simulator and the log writer hold. An empty
// BlockRef reads as zeros.
class BlockRefSource final : public BlockSource {
 public:
  BlockRefSource(std::uint32_t block_size, std::uint32_t block_count);

  void put(LogBlock block, BlockRef contents);  // block < block_count(), contents of block_size()
  const BlockRef& at(LogBlock block) const;
  std::uint32_t block_size() const noexcept override { return block_size_; }
  std::uint32_t block_count() const noexcept override {
    return static_cast<std::uint32_t>(blocks_.size());
  }
  Result<ByteSpan> read(LogBlock block) override;

 private:
  std::uint32_t block_size_;
  BlockRef zeros_;
  std::vector<BlockRef> blocks_;
};

}  // namespace jbdlab::jbd2
