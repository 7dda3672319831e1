#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace jbdlab::ext4 {

// How names of a hashed directory are hashed: s_def_hash_version, and the version byte of the
// directory's index root (EXT2_HASH_* of e2fsprogs). Whether characters count as signed is a flag
// of the superblock, and a parameter here.
enum class DirHashVersion : std::uint8_t { legacy = 0, half_md4 = 1, tea = 2 };

// The hash of a name. `major` has its low bit clear (in an index the bit says that a leaf continues
// the hash of the one before); `minor` breaks ties where a directory is read in hash order.
struct DirHash {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend constexpr auto operator<=>(DirHash, DirHash) = default;
};

// Source: fs/ext4/hash.c, ext4fs_dirhash. A `seed` of zeros means MD4's own initial values. The
// same function spreads the directories of the root over the flex groups (half-MD4 always).
DirHash dir_hash(DirHashVersion version, bool unsigned_chars,
                 const std::array<std::uint32_t, 4>& seed, std::string_view name) noexcept;

}  // namespace jbdlab::ext4
