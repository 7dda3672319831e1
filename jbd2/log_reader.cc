#include "jbd2/log_reader.h"

#include "jbd2/log_fast_commit_scan.h"
#include "jbd2/log_ring_scan.h"

namespace jbdlab::jbd2 {
namespace {

// Where the next transaction would go in an empty log.
LogBlock head_of_empty(const LogSuperblock& superblock, const Geometry& geometry) {
  return geometry.contains(superblock.head()) ? superblock.head() : geometry.first();
}

// The fast-commit area; nothing if there is none. A clean unmount takes the feature away and leaves
// the length, so that stale fast commits can still be found.
std::optional<FastCommitScan> fast_commit_area(const LogSuperblock& superblock,
                                               const Geometry& geometry) {
  if (geometry.fast_commit_count() != 0) {
    return FastCommitScan{geometry.fast_commit_first(), geometry.fast_commit_end(), std::nullopt};
  }
  const std::uint32_t length = superblock.stored_fast_commit_blocks();
  const std::uint32_t end = superblock.block_count();
  if (superblock.version() == 1 || superblock.features().has(feature::kFastCommit) || length == 0 ||
      length >= end - geometry.first().value()) {
    return std::nullopt;
  }
  return FastCommitScan{LogBlock{end - length + 1}, LogBlock{end}, std::nullopt};
}

}  // namespace

std::string_view to_string(LogState state) noexcept {
  switch (state) {
    case LogState::replayable:
      return "replayable";
    case LogState::stale:
      return "stale";
    case LogState::incomplete:
      return "incomplete";
    case LogState::corrupt:
      return "corrupt";
  }
  return "";
}

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::none:
      return "none";
    case Verdict::good:
      return "good";
    case Verdict::bad:
      return "bad";
    case Verdict::torn:
      return "torn";
  }
  return "";
}

Result<LogContents> read_log(BlockSource& source, const LogReadOptions& options) {
  const auto block = source.read(options.superblock);
  if (!block) return std::unexpected(block.error());
  const auto superblock = LogSuperblock::parse(*block);
  if (!superblock) return std::unexpected(superblock.error());
  FindingLog findings(options.max_findings);
  auto refused = check_superblock(
      *superblock, {.block_size = source.block_size(), .block_count = source.block_count()},
      findings);
  if (refused) return std::unexpected(*std::move(refused));

  LogContents log{.superblock = *superblock,
                  .format = LogFormat::of(*superblock),
                  .geometry = Geometry::of(*superblock),
                  .transactions = {},
                  .fast_commits = {},
                  .findings = {},
                  .end = superblock->sequence(),
                  .end_block = {}};
  log.end_block = head_of_empty(*superblock, log.geometry);
  const ScanContext context{source, log.format, log.geometry, options, findings};

  RingScan ring;
  ring.rest_first = log.end_block;
  ring.rest_count = log.geometry.count();
  if (!superblock->empty()) {
    ring = scan_live(context, superblock->sequence(), superblock->start());
    log.end = ring.end;
    log.end_block = ring.end_block;
    log.transactions = std::move(ring.transactions);
  }
  if (options.all) {
    for (LogTransaction& t : scan_stale(context, ring.rest_first, ring.rest_count)) {
      log.transactions.push_back(std::move(t));
    }
  }
  if (auto area = fast_commit_area(*superblock, log.geometry)) {
    if (!superblock->empty() && superblock->features().has(feature::kFastCommit)) {
      area->expected = log.end;
      area->ring_failed = ring.failed;
    }
    if (area->expected || options.all) log.fast_commits = scan_fast_commits(context, *area);
  }
  log.findings = std::move(findings).finish();
  return log;
}

}  // namespace jbdlab::jbd2
