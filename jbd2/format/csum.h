#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/ids.h"
#include "jbd2/format/superblock.h"

// The checksums of the log (journal-format.md, section 1). Each function returns the value that
// should stand in the record; comparing and storing is up to the record. `seed` is LogFormat::seed.
namespace jbdlab::jbd2 {

std::uint32_t journal_seed(const Uuid& journal_uuid) noexcept;

// Journal superblock: seed ~0, its own field (0xFC) counts as zero.
std::uint32_t superblock_checksum(std::span<const std::byte, LogSuperblock::kSize> raw) noexcept;

// Descriptor and revoke blocks: the whole block, its last four bytes count as zero.
std::uint32_t tail_checksum(std::uint32_t seed, ByteSpan block) noexcept;
bool tail_checksum_ok(std::uint32_t seed, ByteSpan block);
void store_tail_checksum(std::uint32_t seed, MutableByteSpan block);

// Commit block of v2/v3: the whole block, its checksum field (16) counts as zero.
std::uint32_t commit_checksum(std::uint32_t seed, ByteSpan block) noexcept;
// The same over a block of which only the header (64 bytes) is believed and the rest counts as
// zero: Linux 6.11 and later accept that when the whole block fails (a torn write).
std::uint32_t commit_checksum_torn(std::uint32_t seed, ByteSpan block) noexcept;

// A journaled block, as it stands in the log (after escaping). A v2 tag holds the low 16 bits.
std::uint32_t data_checksum(std::uint32_t seed, Tid tid, ByteSpan logged) noexcept;

// v1: a running sum over all descriptor and data blocks of a transaction, in log order.
inline constexpr std::uint32_t kTransactionChecksumSeed = 0xFFFF'FFFF;
std::uint32_t add_to_transaction_checksum(std::uint32_t sum, ByteSpan block) noexcept;

// Fast commits: a running sum from seed 0 over the bytes from behind the last TAIL to the next
// TAIL's tid, see fast_commit.h.
inline constexpr std::uint32_t kFastCommitChecksumSeed = 0;

}  // namespace jbdlab::jbd2
