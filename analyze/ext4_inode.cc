#include "analyze/ext4_inode.h"

#include <algorithm>

namespace jbdlab::analyze {

Ext4Inode Ext4Inode::with_map(std::uint64_t size, std::span<const std::byte, 60> map) {
  constexpr std::uint16_t kExtentMagic = 0xF30A;
  constexpr std::uint32_t kExtentsFlag = 0x80000;
  Ext4Inode inode;
  const std::span<std::byte, kSize> raw{inode.raw_};
  put_le<std::uint16_t, 0x00>(raw, static_cast<std::uint16_t>(Type::regular));
  put_le<std::uint32_t, 0x04>(raw, static_cast<std::uint32_t>(size));
  put_le<std::uint16_t, 0x1A>(raw, 1);
  put_le<std::uint32_t, 0x6C>(raw, static_cast<std::uint32_t>(size >> 32));
  if (le<std::uint16_t, 0>(map) == kExtentMagic) put_le<std::uint32_t, 0x20>(raw, kExtentsFlag);
  std::copy(map.begin(), map.end(), raw.begin() + 0x28);
  return inode;
}

}  // namespace jbdlab::analyze
