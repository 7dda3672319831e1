#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace jbdlab {

// Raw CRC-32C register update (reflected polynomial 0x82F63B78, no inversion inside), so that
// crc32c(crc32c(s, a), b) == crc32c(s, a || b). Check: seed ~0 over "123456789" is 0x1cf96d7c.
// Uses the processor's instruction where it has one (chosen once at run time), tables elsewhere.
std::uint32_t crc32c(std::uint32_t seed, ByteSpan bytes) noexcept;

// The table version, on any processor; for tests and benchmarks.
std::uint32_t crc32c_portable(std::uint32_t seed, ByteSpan bytes) noexcept;

// True if crc32c() uses SSE4.2.
bool crc32c_is_accelerated() noexcept;

}  // namespace jbdlab
