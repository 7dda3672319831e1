#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ids.h"

namespace jbdlab::jbd2 {

// First word of every control block of the log (JBD2_MAGIC_NUMBER, include/linux/jbd2.h).
inline constexpr std::uint32_t kMagic = 0xC03B'3998;

enum class BlockType : std::uint32_t {
  descriptor = 1,
  commit = 2,
  superblock_v1 = 3,
  superblock_v2 = 4,
  revoke = 5,
  fast_commit = 6,  // reserved and never written: fast-commit blocks carry no header
};

// The header in front of every control block (descriptor, revoke, commit, superblock).
//
// Layout (big-endian; struct journal_header_s in include/linux/jbd2.h):
//    0 u32 magic     4 u32 block type     8 u32 tid (h_sequence)
struct BlockHeader {
  static constexpr std::size_t kSize = 12;

  BlockType type = BlockType::descriptor;  // as found: may be a value that the enum does not name
  Tid tid;

  // Nothing if the block does not begin with the magic. That is no damage: a block without magic
  // is how the log ends, hence no Error.
  static constexpr std::optional<BlockHeader> parse(ByteSpan block) noexcept {
    if (block.size() < kSize) return std::nullopt;
    const auto raw = block.first<kSize>();
    if (be<std::uint32_t, 0>(raw) != kMagic) return std::nullopt;
    return BlockHeader{static_cast<BlockType>(be<std::uint32_t, 4>(raw)),
                       Tid{be<std::uint32_t, 8>(raw)}};
  }
  // Writes the first kSize bytes of `block`; the rest stays.
  constexpr void build(MutableByteSpan block) const {
    set_be(block, 0, kMagic);
    set_be(block, 4, static_cast<std::uint32_t>(type));
    set_be(block, 8, tid.value());
  }
  friend constexpr bool operator==(const BlockHeader&, const BlockHeader&) = default;
};

}  // namespace jbdlab::jbd2
