#include "analyze/inspect.h"

#include "analyze/findings.h"
#include "jbd2/log_reader.h"

namespace jbdlab::analyze {
namespace {

FilesystemFacts facts_of(const Ext4Superblock& superblock) {
  return {.block_size = superblock.block_size(),
          .cluster_size = superblock.cluster_size(),
          .blocks = superblock.block_count(),
          .free_blocks = superblock.free_block_count(),
          .inodes = superblock.inode_count(),
          .free_inodes = superblock.free_inode_count(),
          .inode_size = superblock.inode_size(),
          .blocks_per_group = superblock.blocks_per_group(),
          .groups = superblock.group_count(),
          .label = superblock.label(),
          .uuid = superblock.uuid(),
          .state = superblock.state_text(),
          .needs_recovery = superblock.needs_recovery(),
          .first_orphan = superblock.last_orphan(),
          .features = feature_names(superblock.features())};
}

std::string checksum_type_of(const jbd2::LogSuperblock& superblock) {
  switch (superblock.features().checksum_mode()) {
    case jbd2::ChecksumMode::v2:
    case jbd2::ChecksumMode::v3:
      return "crc32c";
    case jbd2::ChecksumMode::v1:
      return "crc32";
    case jbd2::ChecksumMode::none:
      break;
  }
  return "none";
}

JournalFacts facts_of(const jbd2::LogSuperblock& superblock) {
  const jbd2::Features features = superblock.features();
  return {.version = superblock.version(),
          .block_size = superblock.block_size(),
          .uuid = superblock.uuid(),
          .blocks = superblock.block_count(),
          .first = superblock.first(),
          .sequence = superblock.sequence(),
          .start = superblock.start(),
          .head = superblock.head(),
          .errno_value = superblock.errno_value(),
          .fast_commit_blocks = features.has(jbd2::feature::kFastCommit)
                                    ? superblock.fast_commit_blocks()
                                    : superblock.stored_fast_commit_blocks(),
          .features = features.names(),
          .checksum_type = checksum_type_of(superblock),
          .checksum_ok = superblock.checksum_ok()};
}

// Reads and judges it; nothing if there is none.
std::optional<jbd2::LogSuperblock> read_superblock(Subject& subject, jbd2::FindingLog& findings) {
  if (!subject.journal) return std::nullopt;
  const auto block = subject.journal->read(subject.superblock);
  if (!block) {
    findings.add(finding::kJournalUnreadable, {}, block.error().what);
    return std::nullopt;
  }
  const auto superblock = jbd2::LogSuperblock::parse(*block);
  if (!superblock) {
    findings.add(jbd2::finding::kSuperblockMagic, {}, superblock.error().what);
    return std::nullopt;
  }
  jbd2::check_superblock(
      *superblock,
      {.block_size = subject.journal->block_size(), .block_count = subject.journal->block_count()},
      findings);
  return *superblock;
}

}  // namespace

InspectReport inspect(Subject& subject) {
  InspectReport report{.filesystem = {},
                       .location = subject.location,
                       .journal = {},
                       .compatibility = {},
                       .findings = {}};
  jbd2::FindingLog findings;
  for (const jbd2::Finding& finding : subject.findings) findings.add(finding);
  const auto superblock = read_superblock(subject, findings);
  if (superblock) report.journal = facts_of(*superblock);
  const jbd2::Features journal_features = superblock ? superblock->features() : jbd2::Features{};
  FsFeatures fs_features;
  if (subject.image) {
    fs_features = subject.image->superblock().features();
    report.filesystem = facts_of(subject.image->superblock());
    if (superblock) check_agreement(subject.image->superblock(), *superblock, findings);
  }
  report.compatibility = requirements(fs_features, superblock ? &journal_features : nullptr);
  report.findings = std::move(findings).finish();
  return report;
}

}  // namespace jbdlab::analyze
