#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace jbdlab {

// Raw CRC-32 register update, polynomial 0x04C11DB7, most significant bit first, no inversion
// inside: what jbd2's "v1" checksum (COMPAT_CHECKSUM) uses with seed ~0.
// Check: seed ~0 over "123456789" is 0x0376e6e7 (CRC-32/MPEG-2).
std::uint32_t crc32be(std::uint32_t seed, ByteSpan bytes) noexcept;

}  // namespace jbdlab
