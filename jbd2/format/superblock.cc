#include "jbd2/format/superblock.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "jbd2/format/csum.h"

namespace jbdlab::jbd2 {
namespace {

constexpr std::size_t kUserCountMax = 48;

}  // namespace

LogSuperblock LogSuperblock::create(const New& n) {
  LogSuperblock s;
  BlockHeader{BlockType::superblock_v2, Tid{0}}.build(s.raw_);
  put_be<std::uint32_t, 0x0C>(s.edit(), n.block_size);
  s.set_block_count(n.block_count);
  s.set_first(n.first);
  s.set_sequence(Tid{1});
  s.set_uuid(n.uuid);
  s.set_user_count(1);
  s.set_stored_fast_commit_blocks(n.fast_commit_blocks);
  return s;
}

Result<LogSuperblock> LogSuperblock::parse(ByteSpan block) {
  if (block.size() < kSize) {
    return fail(Errc::truncated,
                fmt::format("a journal superblock has {} bytes, found {}", kSize, block.size()));
  }
  const std::uint32_t magic = get_be<std::uint32_t>(block, 0);
  if (magic != kMagic) {
    return fail(
        Errc::bad_magic,
        fmt::format("a journal superblock begins with {:08x}, found {:08x}", kMagic, magic));
  }
  const std::uint32_t type = get_be<std::uint32_t>(block, 4);
  if (type != static_cast<std::uint32_t>(BlockType::superblock_v1) &&
      type != static_cast<std::uint32_t>(BlockType::superblock_v2)) {
    return fail(Errc::bad_magic,
                fmt::format("a journal superblock has block type 3 or 4, found {}", type), 4);
  }
  LogSuperblock s;
  std::ranges::copy(block.first<kSize>(), s.raw_.begin());
  return s;
}

void LogSuperblock::build(MutableByteSpan block) const {
  CHECK(block.size() >= kSize);
  std::ranges::copy(raw_, block.begin());
}

std::uint32_t LogSuperblock::version() const noexcept {
  const auto type = be<std::uint32_t, 4>(view());
  return type == static_cast<std::uint32_t>(BlockType::superblock_v1) ? 1 : 2;
}

std::int32_t LogSuperblock::errno_value() const noexcept {
  return std::bit_cast<std::int32_t>(be<std::uint32_t, 0x20>(view()));
}

Features LogSuperblock::features() const noexcept {
  if (version() == 1) return {};
  return {be<std::uint32_t, 0x24>(view()), be<std::uint32_t, 0x28>(view()),
          be<std::uint32_t, 0x2C>(view())};
}

Uuid LogSuperblock::uuid() const noexcept {
  Uuid uuid;
  std::copy_n(raw_.begin() + 0x30, uuid.size(), uuid.begin());
  return uuid;
}

Uuid LogSuperblock::user(std::size_t index) const {
  CHECK(index < kUserCountMax);
  Uuid uuid;
  std::ranges::copy(ByteSpan(raw_).subspan(0x100 + index * uuid.size(), uuid.size()), uuid.begin());
  return uuid;
}

std::uint32_t LogSuperblock::fast_commit_blocks() const noexcept {
  if (!features().has(feature::kFastCommit)) return 0;
  const std::uint32_t stored = stored_fast_commit_blocks();
  return stored == 0 ? kDefaultFastCommitBlocks : stored;
}

bool LogSuperblock::has_checksum() const noexcept {
  const ChecksumMode mode = features().checksum_mode();
  return mode == ChecksumMode::v2 || mode == ChecksumMode::v3;
}

bool LogSuperblock::checksum_ok() const noexcept {
  return !has_checksum() || superblock_checksum(view()) == checksum();
}

void LogSuperblock::set_block_count(std::uint32_t n) noexcept {
  put_be<std::uint32_t, 0x10>(edit(), n);
}
void LogSuperblock::set_first(LogBlock b) noexcept {
  put_be<std::uint32_t, 0x14>(edit(), b.value());
}
void LogSuperblock::set_sequence(Tid tid) noexcept {
  put_be<std::uint32_t, 0x18>(edit(), tid.value());
}
void LogSuperblock::set_start(LogBlock b) noexcept {
  put_be<std::uint32_t, 0x1C>(edit(), b.value());
}
void LogSuperblock::set_errno(std::int32_t value) noexcept {
  put_be<std::uint32_t, 0x20>(edit(), std::bit_cast<std::uint32_t>(value));
}
void LogSuperblock::set_features(Features f) noexcept {
  put_be<std::uint32_t, 0x24>(edit(), f.compat);
  put_be<std::uint32_t, 0x28>(edit(), f.incompat);
  put_be<std::uint32_t, 0x2C>(edit(), f.ro_compat);
  put_be<std::uint8_t, 0x50>(edit(), has_checksum() ? kChecksumTypeCrc32c : std::uint8_t{0});
}
void LogSuperblock::set_uuid(const Uuid& uuid) noexcept {
  std::ranges::copy(uuid, raw_.begin() + 0x30);
}
void LogSuperblock::set_user(std::size_t index, const Uuid& uuid) {
  CHECK(index < kUserCountMax);
  std::ranges::copy(uuid, MutableByteSpan(raw_).subspan(0x100 + index * uuid.size()).begin());
}
void LogSuperblock::set_user_count(std::uint32_t n) noexcept {
  put_be<std::uint32_t, 0x40>(edit(), n);
}
void LogSuperblock::set_stored_fast_commit_blocks(std::uint32_t n) noexcept {
  put_be<std::uint32_t, 0x54>(edit(), n);
}
void LogSuperblock::set_head(LogBlock b) noexcept {
  put_be<std::uint32_t, 0x58>(edit(), b.value());
}

void LogSuperblock::update_checksum() noexcept {
  if (has_checksum()) put_be<std::uint32_t, 0xFC>(edit(), superblock_checksum(view()));
}

}  // namespace jbdlab::jbd2
