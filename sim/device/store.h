#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/block_ref.h"
#include "base/bytes.h"
#include "base/result.h"

namespace jbdlab::sim {

// The contents of a simulated device: a table of shared blocks ("chunks") of the file system's
// block size. What was never written is zeros and costs no memory; neither does file data that is
// still a pattern. The size is fixed; beyond it, the last chunk is zeros.
//
// Copies are cheap and independent: they share blocks and table pages until one of them writes. So
// a crash image is a copy with some writes undone or done.
class BlockStore {
 public:
  // `chunk_size` is a power of two from 512; `size` in bytes, a multiple of 512.
  BlockStore(std::uint32_t chunk_size, std::uint64_t size);

  std::uint32_t chunk_size() const noexcept { return chunk_size_; }
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t chunk_count() const noexcept { return chunk_count_; }

  // Precondition of both: index < chunk_count().
  BlockRef read(std::uint64_t index) const;
  void write(std::uint64_t index, BlockRef contents);  // of chunk_size() bytes

  // Any range inside of size().
  void read_bytes(std::uint64_t offset, MutableByteSpan out) const;
  void write_bytes(std::uint64_t offset, ByteSpan bytes);

  // The chunks that may be other than zeros, in order, each as its byte offset and bytes (of the
  // last one only what lies inside of size()). Chunks of zero bytes are left out, so that whoever
  // writes them to a new file gets the holes back. Stops at the first false and returns it.
  bool for_each_chunk(const std::function<bool(std::uint64_t offset, ByteSpan bytes)>& visit) const;

  // A file's contents; holes and zero chunks of the file cost no memory. A size that is no multiple
  // of 512 is rounded up. Errors: io.
  static Result<BlockStore> load(const std::string& path, std::uint32_t chunk_size);

  // Chunks that are not known to be zeros.
  std::uint64_t used_chunks() const noexcept;

 private:
  static constexpr std::uint64_t kPageChunks = 512;
  using Page = std::array<BlockRef, kPageChunks>;  // an empty BlockRef is zeros

  std::uint32_t chunk_size_;
  std::uint64_t size_;
  std::uint64_t chunk_count_;
  std::vector<std::shared_ptr<Page>> pages_;  // null: zeros; shared with copies of the store
};

}  // namespace jbdlab::sim
