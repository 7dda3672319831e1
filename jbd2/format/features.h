#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::jbd2 {

enum class FeatureWord : std::uint8_t { compat, incompat, ro_compat };

// One feature bit of the journal superblock. Names are those of dumpe2fs; for the bit that it has
// no name for (it prints FEATURE_I5) ours is "fast_commit".
struct Feature {
  FeatureWord word;
  std::uint32_t bit;
  std::string_view name;
};

namespace feature {
using enum FeatureWord;
inline constexpr Feature kChecksum{compat, 0x1,
                                   "journal_checksum"};  // the transaction checksum, v1
inline constexpr Feature kRevoke{incompat, 0x1, "journal_incompat_revoke"};
inline constexpr Feature k64Bit{incompat, 0x2, "journal_64bit"};
inline constexpr Feature kAsyncCommit{incompat, 0x4, "journal_async_commit"};
inline constexpr Feature kChecksumV2{incompat, 0x8, "journal_checksum_v2"};
inline constexpr Feature kChecksumV3{incompat, 0x10, "journal_checksum_v3"};
inline constexpr Feature kFastCommit{incompat, 0x20, "fast_commit"};
inline constexpr std::array kAll{kChecksum,   kRevoke,     k64Bit,     kAsyncCommit,
                                 kChecksumV2, kChecksumV3, kFastCommit};
}  // namespace feature

// How the log is protected. The three kinds exclude each other (journal-format.md, section 1).
enum class ChecksumMode : std::uint8_t {
  none,
  v1,  // one CRC over all descriptor and data blocks of a transaction, in its commit block
  v2,  // each control block, and the low 16 bits for each data block
  v3,  // each control block, and 32 bits for each data block
};
std::string_view to_string(ChecksumMode mode) noexcept;

// The three feature words of a journal superblock.
struct Features {
  std::uint32_t compat = 0;
  std::uint32_t incompat = 0;
  std::uint32_t ro_compat = 0;

  constexpr bool has(const Feature& f) const noexcept { return (word(f.word) & f.bit) != 0; }
  constexpr void set(const Feature& f) noexcept { word(f.word) |= f.bit; }
  constexpr void clear(const Feature& f) noexcept { word(f.word) &= ~f.bit; }

  // The mode that is in force; where two bits contradict each other, the strongest
  // (has_checksum_conflict() tells).
  constexpr ChecksumMode checksum_mode() const noexcept {
    if (has(feature::kChecksumV3)) return ChecksumMode::v3;
    if (has(feature::kChecksumV2)) return ChecksumMode::v2;
    return has(feature::kChecksum) ? ChecksumMode::v1 : ChecksumMode::none;
  }
  constexpr bool has_checksum_conflict() const noexcept {
    return int{has(feature::kChecksum)} + int{has(feature::kChecksumV2)} +
               int{has(feature::kChecksumV3)} >
           1;
  }
  // Bits that a reader must understand and we do not know: a journal with any is refused.
  constexpr Features unknown() const noexcept {
    Features rest{0, incompat, ro_compat};
    for (const Feature& f : feature::kAll) rest.clear(f);
    return rest;
  }
  constexpr bool empty() const noexcept { return (compat | incompat | ro_compat) == 0; }

  // Names in the order compat, incompat, ro_compat, lowest bit first; an unknown bit is
  // FEATURE_C12 style.
  std::vector<std::string> names() const;

  friend constexpr bool operator==(const Features&, const Features&) = default;

 private:
  constexpr std::uint32_t& word(FeatureWord w) noexcept {
    return w == FeatureWord::compat ? compat : w == FeatureWord::incompat ? incompat : ro_compat;
  }
  constexpr std::uint32_t word(FeatureWord w) const noexcept {
    return w == FeatureWord::compat ? compat : w == FeatureWord::incompat ? incompat : ro_compat;
  }
};

}  // namespace jbdlab::jbd2
