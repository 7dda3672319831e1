#include "jbd2/format/revoke.h"

#include <fmt/format.h>

#include <algorithm>

#include "jbd2/format/csum.h"

namespace jbdlab::jbd2 {
namespace {

constexpr std::size_t kCountOffset = 12;
constexpr std::size_t kHeaderSize = 16;

}  // namespace

Result<void> parse_revoke(const LogFormat& format, ByteSpan block, std::vector<FsBlock>& blocks) {
  blocks.clear();
  if (block.size() != format.block_size) {
    return fail(Errc::truncated, fmt::format("a revoke block has {} bytes, found {}",
                                             format.block_size, block.size()));
  }
  const auto header = BlockHeader::parse(block);
  if (!header || header->type != BlockType::revoke) {
    return fail(Errc::bad_magic, "a revoke block begins with the magic and type 5");
  }
  const std::uint32_t used = get_be<std::uint32_t>(block, kCountOffset);
  const std::uint32_t most = format.block_size - format.tail_size();
  if (used < kHeaderSize || used > most) {
    return fail(Errc::invalid,
                fmt::format("the bytes used are {} to {}, found {}", kHeaderSize, most, used),
                kCountOffset);
  }
  const std::size_t record = format.revoke_record_size();
  for (std::size_t at = kHeaderSize; at + record <= used; at += record) {
    blocks.push_back(FsBlock{format.is_64bit ? get_be<std::uint64_t>(block, at)
                                             : get_be<std::uint32_t>(block, at)});
  }
  return {};
}

RevokeBuilder::RevokeBuilder(const LogFormat& format, Tid tid, MutableByteSpan block)
    : format_(format), block_(block), at_(kHeaderSize) {
  CHECK(block.size() == format.block_size);
  std::ranges::fill(block_, std::byte{0});
  BlockHeader{BlockType::revoke, tid}.build(block_);
}

bool RevokeBuilder::full() const noexcept {
  return at_ + format_.revoke_record_size() > block_.size() - format_.tail_size();
}

void RevokeBuilder::add(FsBlock fs_block) {
  CHECK(!full());
  if (format_.is_64bit) {
    set_be(block_, at_, fs_block.value());
  } else {
    set_be(block_, at_, static_cast<std::uint32_t>(fs_block.value()));
  }
  at_ += format_.revoke_record_size();
  ++count_;
}

void RevokeBuilder::finish() {
  set_be(block_, kCountOffset, static_cast<std::uint32_t>(at_));
  if (format_.has_block_checksums()) store_tail_checksum(format_.seed, block_);
}

std::uint32_t RevokeBuilder::capacity(const LogFormat& format) noexcept {
  const auto header = static_cast<std::uint32_t>(kHeaderSize);
  return (format.block_size - header - format.tail_size()) / format.revoke_record_size();
}

}  // namespace jbdlab::jbd2
