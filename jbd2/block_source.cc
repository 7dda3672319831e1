#include "jbd2/block_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace jbdlab::jbd2 {
namespace {

std::unexpected<Error> no_such_block(LogBlock block, std::uint32_t count, std::uint32_t size) {
  return fail(
      Errc::truncated,
      fmt::format("the journal has {} blocks, and block {} was asked for", count, block.value()),
      std::uint64_t{block.value()} * size);
}

}  // namespace

MemoryBlockSource::MemoryBlockSource(ByteSpan bytes, std::uint32_t block_size)
    : bytes_(bytes), block_size_(block_size) {
  CHECK(block_size > 0);
  constexpr std::size_t kMax = std::numeric_limits<std::uint32_t>::max();
  block_count_ = static_cast<std::uint32_t>(std::min(bytes.size() / block_size, kMax));
}

Result<ByteSpan> MemoryBlockSource::read(LogBlock block) {
  if (block.value() >= block_count_) return no_such_block(block, block_count_, block_size_);
  return bytes_.subspan(std::size_t{block.value()} * block_size_, block_size_);
}

BlockRefSource::BlockRefSource(std::uint32_t block_size, std::uint32_t block_count)
    : block_size_(block_size), zeros_(BlockRef::zeros(block_size)), blocks_(block_count) {}

void BlockRefSource::put(LogBlock block, BlockRef contents) {
  CHECK(block.value() < blocks_.size());
  CHECK(contents.size() == block_size_);
  blocks_[block.value()] = std::move(contents);
}

const BlockRef& BlockRefSource::at(LogBlock block) const {
  CHECK(block.value() < blocks_.size());
  return blocks_[block.value()] ? blocks_[block.value()] : zeros_;
}

Result<ByteSpan> BlockRefSource::read(LogBlock block) {
  if (block.value() >= blocks_.size()) return no_such_block(block, block_count(), block_size_);
  return at(block).bytes();
}

}  // namespace jbdlab::jbd2
