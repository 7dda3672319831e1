#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace jbdlab::analyze {

// What this program reads of an inode: a copy of its first 128 bytes (little-endian; struct
// ext4_inode in fs/ext4/ext4.h).
class Ext4Inode {
 public:
  static constexpr std::size_t kSize = 128;

  enum class Type : std::uint16_t {
    none = 0,
    fifo = 0x1000,
    character_device = 0x2000,
    directory = 0x4000,
    block_device = 0x6000,
    regular = 0x8000,
    symlink = 0xA000,
    socket = 0xC000,
  };

  // Copies. Errors: truncated.
  static Result<Ext4Inode> parse(ByteSpan bytes) {
    if (bytes.size() < kSize) return fail(Errc::truncated, "expected an inode of 128 bytes");
    Ext4Inode inode;
    std::copy_n(bytes.begin(), kSize, inode.raw_.begin());
    return inode;
  }
  // An inode of which only the size and the map are known.
  static Ext4Inode with_map(std::uint64_t size, std::span<const std::byte, 60> map);

  Type type() const noexcept { return Type{static_cast<std::uint16_t>(mode() & 0xF000)}; }
  std::uint16_t mode() const noexcept { return le<std::uint16_t, 0x00>(view()); }
  std::uint64_t size() const noexcept {
    return std::uint64_t{le<std::uint32_t, 0x6C>(view())} << 32 | le<std::uint32_t, 0x04>(view());
  }
  std::uint16_t link_count() const noexcept { return le<std::uint16_t, 0x1A>(view()); }
  std::uint32_t flags() const noexcept { return le<std::uint32_t, 0x20>(view()); }
  bool has_extents() const noexcept { return (flags() & 0x80000) != 0; }
  bool has_inline_data() const noexcept { return (flags() & 0x1000'0000) != 0; }
  std::span<const std::byte, 60> map() const noexcept { return view().subspan<0x28, 60>(); }
  FsBlock xattr_block() const noexcept {
    return FsBlock{std::uint64_t{le<std::uint16_t, 0x76>(view())} << 32 |
                   le<std::uint32_t, 0x68>(view())};
  }

 private:
  Ext4Inode() noexcept = default;
  std::span<const std::byte, kSize> view() const noexcept { return raw_; }

  std::array<std::byte, kSize> raw_{};
};

}  // namespace jbdlab::analyze
