#include <fmt/format.h>

#include <string>

#include "jbd2/log_reader.h"

namespace jbdlab::jbd2 {
namespace {

// Collects findings, and remembers the first one that makes the superblock useless.
class Judge {
 public:
  explicit Judge(FindingLog& findings) : findings_(findings) {}

  void note(const FindingKind& kind, std::string_view detail) { findings_.add(kind, {}, detail); }
  void refuse(Errc code, std::uint64_t offset, const FindingKind& kind, std::string_view detail) {
    findings_.add(kind, {}, detail);
    if (!reason_) reason_ = Error{code, offset, fmt::format("{}: {}", kind.sentence, detail)};
  }
  const std::optional<Error>& reason() const noexcept { return reason_; }

 private:
  FindingLog& findings_;
  std::optional<Error> reason_;
};

void check_features(const LogSuperblock& superblock, Judge& judge) {
  const Features features = superblock.features();
  if (const Features unknown = features.unknown(); !unknown.empty()) {
    std::string names;
    for (const std::string& name : unknown.names()) names += (names.empty() ? "" : " ") + name;
    judge.refuse(Errc::unsupported, 0x28, finding::kSuperblockFeatures, names);
  }
  if (features.has_checksum_conflict()) {
    judge.refuse(Errc::invalid, 0x24, finding::kSuperblockChecksumConflict,
                 "at most one of v1, v2 and v3 is allowed");
  }
  if (!superblock.has_checksum()) return;
  if (superblock.checksum_type() != LogSuperblock::kChecksumTypeCrc32c) {
    judge.refuse(Errc::unsupported, 0x50, finding::kSuperblockChecksumType,
                 fmt::format("expected {}, found {}", LogSuperblock::kChecksumTypeCrc32c,
                             superblock.checksum_type()));
  }
  if (!superblock.checksum_ok()) {
    judge.refuse(Errc::checksum, 0xFC, finding::kSuperblockChecksum,
                 fmt::format("found {:08x}", superblock.checksum()));
  }
}

// True if the ring exists, so that what points into it can be judged.
bool check_geometry(const LogSuperblock& superblock, const JournalPlace& place, Judge& judge) {
  const std::uint32_t length = superblock.block_count();
  if (length > place.block_count) {
    judge.refuse(Errc::invalid, 0x10, finding::kSuperblockLength,
                 fmt::format("expected at most {}, found {}", place.block_count, length));
  }
  const std::uint32_t first = superblock.first().value();
  if (first == 0 || first >= length) {
    judge.refuse(Errc::invalid, 0x14, finding::kSuperblockFirst,
                 fmt::format("expected 1 to {}, found {}", std::int64_t{length} - 1, first));
    return false;
  }
  const std::uint32_t area = superblock.fast_commit_blocks();
  if (area >= length - first) {
    judge.refuse(Errc::invalid, 0x54, finding::kSuperblockFastCommitArea,
                 fmt::format("{} of {} blocks", area, length));
    return false;
  }
  if (length - area < LogSuperblock::kMinLogBlocks) {
    judge.note(finding::kJournalTooSmall,
               fmt::format("expected at least {} blocks without the fast-commit area, found {}",
                           LogSuperblock::kMinLogBlocks, length - area));
  }
  return true;
}

}  // namespace

std::optional<Error> check_superblock(const LogSuperblock& superblock, const JournalPlace& place,
                                      FindingLog& findings) {
  Judge judge(findings);
  if (superblock.block_size() != place.block_size) {
    judge.refuse(Errc::invalid, 0x0C, finding::kSuperblockBlockSize,
                 fmt::format("expected {}, found {}", place.block_size, superblock.block_size()));
  }
  check_features(superblock, judge);
  if (check_geometry(superblock, place, judge)) {
    const Geometry ring = Geometry::of(superblock);
    if (!superblock.empty() && !ring.contains(superblock.start())) {
      judge.refuse(Errc::invalid, 0x1C, finding::kSuperblockStart,
                   fmt::format("expected {} to {}, found {}", ring.first().value(),
                               ring.end().value() - 1, superblock.start().value()));
    }
    if (superblock.head() != LogBlock{0} && !ring.contains(superblock.head())) {
      judge.note(finding::kHeadOutOfRange,
                 fmt::format("expected {} to {}, found {}", ring.first().value(),
                             ring.end().value() - 1, superblock.head().value()));
    }
  }
  if (const std::int32_t value = superblock.errno_value(); value != 0) {
    judge.note(finding::kJournalErrno, fmt::format("error {}", value));
  }
  return judge.reason();
}

}  // namespace jbdlab::jbd2
