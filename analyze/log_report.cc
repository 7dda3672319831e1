#include "analyze/log_report.h"

#include <fmt/core.h>

#include <algorithm>

namespace jbdlab::analyze {
namespace {

jbd2::LogReadOptions read_options(const Subject& subject, const LogOptions& options) {
  jbd2::LogReadOptions read;
  read.superblock = subject.superblock;
  read.all = options.all;
  if (subject.image) {
    read.fs_block_count = subject.image->block_count();
    read.inode_size = subject.image->superblock().inode_size();
  }
  read.journal_blocks = subject.journal_blocks();
  return read;
}

std::vector<std::vector<BlockKind>> kinds_of(const jbd2::LogContents& contents, BlockKinds& kinds) {
  std::vector<std::vector<BlockKind>> result;
  result.reserve(contents.transactions.size());
  for (const auto& transaction : contents.transactions) {
    auto& row = result.emplace_back();
    row.reserve(transaction.blocks.size());
    for (const auto& block : transaction.blocks) row.push_back(kinds.of(block));
  }
  return result;
}

void keep_tids(jbd2::LogContents& contents, const LogOptions::Tids& tids) {
  const auto outside = [&](const auto& commit) {
    return tids.first.after(commit.tid) || commit.tid.after(tids.last);
  };
  std::erase_if(contents.transactions, outside);
  std::erase_if(contents.fast_commits, outside);
}

void keep_inode(jbd2::LogContents& contents, Ino ino, FsBlock table_block) {
  for (auto& transaction : contents.transactions) {
    std::erase_if(transaction.blocks,
                  [&](const jbd2::LoggedBlock& block) { return block.fs_block != table_block; });
    std::erase_if(transaction.revoked,
                  [&](const jbd2::RevokedBlock& block) { return block.fs_block != table_block; });
  }
  std::erase_if(contents.transactions, [](const jbd2::LogTransaction& transaction) {
    return transaction.blocks.empty() && transaction.revoked.empty();
  });
  for (auto& commit : contents.fast_commits) {
    std::erase_if(commit.tags, [&](const jbd2::FastCommitEntry& tag) { return tag.ino != ino; });
  }
  std::erase_if(contents.fast_commits,
                [](const jbd2::LogFastCommit& commit) { return commit.tags.empty(); });
}

}  // namespace

Result<LogReport> read_log_report(Subject& subject, const LogOptions& options) {
  std::optional<FsBlock> table_block;
  if (options.inode) {
    if (!subject.image) {
      return fail(Errc::usage, "an inode can only be looked for with its file system");
    }
    table_block = BlockKinds::inode_table_block(*subject.image, *options.inode);
    if (!table_block) {
      return fail(Errc::usage,
                  fmt::format("expected an inode of 1 to {}, found {}",
                              subject.image->superblock().inode_count(), options.inode->value()));
    }
  }
  if (!subject.journal) {
    return std::unexpected(
        subject.journal_error.value_or(Error{Errc::not_found, 0, "there is no journal"}));
  }
  auto contents = jbd2::read_log(*subject.journal, read_options(subject, options));
  if (!contents) return std::unexpected(contents.error());

  jbd2::FindingLog findings;
  for (const auto& finding : subject.findings) findings.add(finding);
  LogReport report{.location = subject.location,
                   .block_size = subject.journal->block_size(),
                   .needs_recovery = {},
                   .contents = std::move(*contents),
                   .whole = !options.tids && !options.inode,
                   .kinds = {},
                   .history = {},
                   .findings = {}};
  if (subject.image) {
    report.needs_recovery = subject.image->superblock().needs_recovery();
    check_agreement(subject.image->superblock(), report.contents.superblock, findings);
  }
  for (const auto& finding : report.contents.findings) findings.add(finding);
  report.findings = std::move(findings).finish();

  if (options.tids) keep_tids(report.contents, *options.tids);
  if (options.inode && table_block) {
    keep_inode(report.contents, *options.inode, *table_block);
    report.history = inode_history(*subject.image, *options.inode, *table_block, report.contents,
                                   *subject.journal);
  }
  BlockKinds kinds(subject.image.get(), report.contents, *subject.journal);
  report.kinds = kinds_of(report.contents, kinds);
  return report;
}

}  // namespace jbdlab::analyze
