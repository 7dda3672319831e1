#include "jbd2/format/csum.h"

#include <array>

#include "base/crc32be.h"
#include "base/crc32c.h"

namespace jbdlab::jbd2 {
namespace {

constexpr std::size_t kFieldSize = 4;
constexpr std::size_t kCommitChecksumOffset = 16;
constexpr std::size_t kCommitHeaderSize = 64;  // sizeof(struct commit_header) on 64-bit machines
constexpr std::size_t kSuperblockChecksumOffset = 0xFC;

// Over all of `bytes`, with the four bytes at `field` as if they were zero.
std::uint32_t crc32c_without(std::uint32_t seed, ByteSpan bytes, std::size_t field) noexcept {
  static constexpr std::array<std::byte, kFieldSize> kZeros{};
  const std::uint32_t before = crc32c(crc32c(seed, bytes.first(field)), kZeros);
  return crc32c(before, bytes.subspan(field + kFieldSize));
}

}  // namespace

std::uint32_t journal_seed(const Uuid& journal_uuid) noexcept {
  return crc32c(0xFFFF'FFFF, journal_uuid);
}

std::uint32_t superblock_checksum(std::span<const std::byte, LogSuperblock::kSize> raw) noexcept {
  return crc32c_without(0xFFFF'FFFF, raw, kSuperblockChecksumOffset);
}

std::uint32_t tail_checksum(std::uint32_t seed, ByteSpan block) noexcept {
  return crc32c_without(seed, block, block.size() - kFieldSize);
}

bool tail_checksum_ok(std::uint32_t seed, ByteSpan block) {
  return get_be<std::uint32_t>(block, block.size() - kFieldSize) == tail_checksum(seed, block);
}

void store_tail_checksum(std::uint32_t seed, MutableByteSpan block) {
  set_be(block, block.size() - kFieldSize, tail_checksum(seed, block));
}

std::uint32_t commit_checksum(std::uint32_t seed, ByteSpan block) noexcept {
  return crc32c_without(seed, block, kCommitChecksumOffset);
}

std::uint32_t commit_checksum_torn(std::uint32_t seed, ByteSpan block) noexcept {
  static constexpr std::array<std::byte, 512> kZeros{};
  std::uint32_t crc = crc32c_without(seed, block.first(kCommitHeaderSize), kCommitChecksumOffset);
  for (std::size_t left = block.size() - kCommitHeaderSize; left != 0;) {
    const std::size_t piece = left < kZeros.size() ? left : kZeros.size();
    crc = crc32c(crc, ByteSpan(kZeros).first(piece));
    left -= piece;
  }
  return crc;
}

std::uint32_t data_checksum(std::uint32_t seed, Tid tid, ByteSpan logged) noexcept {
  std::array<std::byte, kFieldSize> sequence{};
  detail::store<std::uint32_t, true>(sequence.data(), tid.value());
  return crc32c(crc32c(seed, sequence), logged);
}

std::uint32_t add_to_transaction_checksum(std::uint32_t sum, ByteSpan block) noexcept {
  return crc32be(sum, block);
}

}  // namespace jbdlab::jbd2
