#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/device/store.h"

namespace jbdlab::cli {

// A new file system, made by the system's mke2fs in a file in memory: as `mke2fs -t ext4` with the
// user's options behind our own (lists of -E joined), a configuration file of our own and a fixed
// clock, so that the same options give the same bytes on every machine.
//
// `options` is split into words at blanks; quotes ' and " and a backslash keep them together.
// Errors: usage (a word that is no option: a device name, say; or mke2fs refuses, with what it
// says), not_found (no mke2fs), io.
Result<sim::BlockStore> make_file_system(std::string_view options, std::uint64_t size_bytes);

// Seconds since 1970 at which that fixed clock stands.
inline constexpr std::uint64_t kMkfsTime = 1'700'000'000;

}  // namespace jbdlab::cli
