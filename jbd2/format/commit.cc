#include "jbd2/format/commit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "jbd2/format/csum.h"

namespace jbdlab::jbd2 {

std::uint64_t CommitTime::since_epoch_ns() const noexcept {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  const bool by_debugfs = seconds != 0 && (seconds & 0xFFFF'FFFF) == 0;
  const std::uint64_t s = by_debugfs ? seconds >> 32 : seconds;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  if (s > (kMax - nanoseconds) / kNsPerSecond) return kMax;
  return s * kNsPerSecond + nanoseconds;
}

Result<CommitBlock> CommitBlock::parse(ByteSpan block) {
  if (block.size() < kSize) {
    return fail(Errc::truncated,
                fmt::format("a commit block has at least {} bytes, found {}", kSize, block.size()));
  }
  const auto header = BlockHeader::parse(block);
  if (!header || header->type != BlockType::commit) {
    return fail(Errc::bad_magic, "a commit block begins with the magic and type 2");
  }
  return CommitBlock(block.first<kSize>());
}

void build_commit(const LogFormat& format, Tid tid, CommitTime time,
                  std::uint32_t transaction_checksum, MutableByteSpan block) {
  CHECK(block.size() == format.block_size);
  std::ranges::fill(block, std::byte{0});
  BlockHeader{BlockType::commit, tid}.build(block);
  const auto raw = block.first<CommitBlock::kSize>();
  put_be<std::uint64_t, 48>(raw, time.seconds);
  put_be<std::uint32_t, 56>(raw, time.nanoseconds);
  if (format.checksums == ChecksumMode::v1) {
    put_be<std::uint8_t, 12>(raw, CommitBlock::kChecksumTypeCrc32);
    put_be<std::uint8_t, 13>(raw, CommitBlock::kChecksumSizeCrc32);
    put_be<std::uint32_t, 16>(raw, transaction_checksum);
  } else if (format.has_block_checksums()) {
    put_be<std::uint32_t, 16>(raw, commit_checksum(format.seed, block));
  }
}

}  // namespace jbdlab::jbd2
