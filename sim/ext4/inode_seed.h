#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/ids.h"
#include "sim/ext4/volume.h"

namespace jbdlab::ext4 {

// Seed of the checksums of everything that belongs to one inode: the inode itself, its directory
// blocks and its extent blocks (i_csum_seed, set by ext4_iget of fs/ext4/inode.c).
inline std::uint32_t inode_checksum_seed(const Geometry& geometry, Ino ino,
                                         std::uint32_t generation) noexcept {
  std::array<std::byte, 8> key{};
  put_le<std::uint32_t, 0>(std::span<std::byte, 8>{key}, ino.value());
  put_le<std::uint32_t, 4>(std::span<std::byte, 8>{key}, generation);
  return crc32c(geometry.csum_seed, key);
}

}  // namespace jbdlab::ext4
