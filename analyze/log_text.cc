#include <fmt/core.h>

#include <algorithm>

#include "analyze/report_text.h"
#include "analyze/text_style.h"

namespace jbdlab::analyze {
namespace {

using jbd2::FcTag;

// 7, 1, 2, 3 as "1-3", "7".
std::vector<std::string> ranges_of(const std::vector<jbd2::RevokedBlock>& revoked) {
  std::vector<std::uint64_t> blocks;
  blocks.reserve(revoked.size());
  for (const jbd2::RevokedBlock& block : revoked) blocks.push_back(block.fs_block.value());
  std::sort(blocks.begin(), blocks.end());
  std::vector<std::string> words;
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t last = i;
    while (last + 1 < blocks.size() && blocks[last + 1] - blocks[last] <= 1) ++last;
    words.push_back(blocks[last] == blocks[i] ? fmt::format("{}", blocks[i])
                                              : fmt::format("{}-{}", blocks[i], blocks[last]));
    i = last + 1;
  }
  return words;
}

std::string checksums_text(const jbd2::LogTransaction& transaction, const Paint& paint) {
  const auto one = [&](std::string_view what, jbd2::Verdict verdict) {
    return fmt::format("{} {}", what, paint.of(verdict, to_string(verdict)));
  };
  return fmt::format("checksums: {}, {}, {}", one("commit", transaction.commit_checksum),
                     one("descriptors", transaction.control_checksum),
                     one("blocks", transaction.data_checksum));
}

std::string block_row(const jbd2::LoggedBlock& block, BlockKind kind, const Paint& paint) {
  std::string notes;
  if ((block.flags & jbd2::tag_flag::kEscape) != 0) notes += "  escaped";
  if (block.checksum == jbd2::Verdict::bad) notes += "  " + paint.bad("checksum bad");
  const std::size_t kind_width = notes.empty() ? 0 : 12;
  return fmt::format("  {:>11}  {:>15}  {:<{}}{}\n", block.log_block.value(),
                     block.fs_block.value(), to_string(kind), kind_width, notes);
}

std::string transaction_text(const jbd2::LogTransaction& transaction,
                             const std::vector<BlockKind>& kinds, const Paint& paint) {
  std::string text = fmt::format(
      "\n{}  {}  journal blocks {}-{}",
      paint.bold(fmt::format("Transaction {}", transaction.tid.value())),
      paint.of(transaction.state, to_string(transaction.state)), transaction.first.value(),
      transaction.commit ? fmt::format("{}", transaction.commit->value()) : std::string{"?"});
  if (transaction.time) {
    text += fmt::format("  committed {}", time_text(transaction.time->since_epoch_ns()));
  }
  text += fmt::format("\n  {}\n", checksums_text(transaction, paint));
  if (!transaction.blocks.empty()) {
    text += paint.dim(fmt::format("  {:>11}  {:>15}  {}\n", "journal", "file system", "kind"));
  }
  for (std::size_t i = 0; i < transaction.blocks.size(); ++i) {
    text += block_row(transaction.blocks[i], kinds[i], paint);
  }
  if (!transaction.revoked.empty()) {
    constexpr std::size_t kIndent = 10;
    text += fmt::format("  revokes {}\n", fill(ranges_of(transaction.revoked), kIndent, kIndent));
  }
  return text;
}

std::string tag_text(const jbd2::FastCommitEntry& tag) {
  switch (tag.tag) {
    case FcTag::add_range:
      return fmt::format("inode {}: file blocks {}+{} at block {}{}", tag.ino.value(),
                         tag.lblk.value(), tag.len, tag.pblk.value(),
                         tag.unwritten ? ", unwritten" : "");
    case FcTag::del_range:
      return fmt::format("inode {}: file blocks {}+{}", tag.ino.value(), tag.lblk.value(), tag.len);
    case FcTag::creat:
    case FcTag::link:
    case FcTag::unlink:
      return fmt::format("inode {} in directory {}: {}", tag.ino.value(), tag.parent.value(),
                         name_text(tag.name));
    case FcTag::inode:
      return fmt::format("inode {}, {} bytes", tag.ino.value(), tag.len);
    case FcTag::head:
    case FcTag::tail:
      return fmt::format("transaction {}", tag.tid.value());
    case FcTag::pad:
      break;
  }
  return {};
}

std::string fast_commit_text(const jbd2::LogFastCommit& commit, const Paint& paint) {
  std::string text =
      fmt::format("\n{}  {}  journal block {}, {} {}  crc {}\n",
                  paint.bold(fmt::format("Fast commit of transaction {}", commit.tid.value())),
                  paint.of(commit.state, to_string(commit.state)), commit.log_block.value(),
                  commit.blocks, commit.blocks == 1 ? "block" : "blocks",
                  commit.crc_ok ? paint.good("good") : paint.bad("bad"));
  for (const jbd2::FastCommitEntry& tag : commit.tags) {
    constexpr std::size_t kIndent = 13;
    const std::string what = fill(tag_text(tag), kIndent, kIndent);
    text += what.empty() ? fmt::format("  {}\n", to_string(tag.tag))
                         : fmt::format("  {:<10} {}\n", to_string(tag.tag), what);
  }
  return text;
}

std::string words_of(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words)
    text += fmt::format("{}{}", text.empty() ? "" : " ", word);
  return text;
}

// Before 1970 the printer of commit times does not reach.
std::string inode_time_text(std::int64_t ns) {
  return ns < 0 ? std::string{"before 1970"} : time_text(static_cast<std::uint64_t>(ns));
}

std::string facts_columns(const InodeFacts& facts) {
  if (!facts.in_use() && facts.links == 0) return "   free";
  return fmt::format(" {:06o} {:>13} {:>5} {:>9}", facts.mode, facts.size, facts.links,
                     facts.sectors);
}

// The versions of an inode; such as are the same as the one before them only counted.
std::string history_text(const InodeHistory& history, const Paint& paint) {
  std::string text =
      fmt::format("\n{}\n", paint.bold(fmt::format("History of inode {}", history.ino.value())));
  text +=
      paint.dim(fmt::format("  {:>11} {:<11} {:>8} {:>6} {:>13} {:>5} {:>9}  {}\n", "transaction",
                            "", "journal", "mode", "size", "links", "sectors", "changed"));
  constexpr std::size_t kStateColumn = 14, kChangedColumn = 73;
  std::size_t same = 0;
  for (const InodeVersion& version : history.versions) {
    const bool first = &version == &history.versions.front();
    if (!first && version.changed.empty()) {
      ++same;
      continue;
    }
    const bool fast = version.source == InodeVersion::Source::fast_commit;
    const std::string_view where = fast ? "fast commit" : to_string(version.state);
    const std::string rest =
        fmt::format(" {:>8}{}", version.log_block.value(), facts_columns(version.facts));
    text += fmt::format("  {:>11} {}{}", version.tid.value(),
                        paint.of(version.state, fmt::format("{:<11}", where)), rest);
    if (!first) {
      const std::size_t at = kStateColumn + 11 + rest.size();
      const std::size_t blanks = at + 2 < kChangedColumn ? kChangedColumn - at : 2;
      text += std::string(blanks, ' ');
      text += fill(words_of(version.changed), at + blanks, kChangedColumn);
    }
    text += '\n';
    if (version.facts.in_use()) {
      text +=
          paint.dim(fmt::format("{:>25}ctime {}\n", "", inode_time_text(version.facts.ctime_ns)));
    }
  }
  if (history.on_disk) {
    text += fmt::format("  {:>11} {:<11} {:>8}{}\n", "on the disk", "now", "",
                        facts_columns(*history.on_disk));
  }
  if (same != 0) {
    text += fmt::format("  {} more {} the same as the one before.\n", same,
                        same == 1 ? "version is" : "versions are");
  }
  return text;
}

std::string summary(const LogReport& report) {
  const jbd2::LogContents& log = report.contents;
  if (log.superblock.empty()) {
    return fmt::format("The log is empty; the next transaction comes after {}.\n",
                       log.superblock.sequence().value());
  }
  if (!report.whole) {  // what recovery takes cannot be told from a part
    return fmt::format("The log begins at block {} with transaction {}.\n",
                       log.superblock.start().value(), log.superblock.sequence().value());
  }
  std::size_t replayable = 0, blocks = 0, fast_commits = 0;
  for (const auto& transaction : log.transactions) {
    if (transaction.state != jbd2::LogState::replayable) continue;
    ++replayable;
    blocks += transaction.blocks.size();
  }
  for (const auto& commit : log.fast_commits) {
    if (commit.state == jbd2::LogState::replayable) ++fast_commits;
  }
  return fmt::format(
      "The log begins at block {} with transaction {}.\nRecovery takes {} {} with {} {}, and {} "
      "fast "
      "{}.\n",
      log.superblock.start().value(), log.superblock.sequence().value(), replayable,
      replayable == 1 ? "transaction" : "transactions", blocks, blocks == 1 ? "block" : "blocks",
      fast_commits, fast_commits == 1 ? "commit" : "commits");
}

}  // namespace

void write_log_text(const LogReport& report, std::string_view image, TextOptions options,
                    const Sink& sink) {
  const Paint paint{options.color};
  const jbd2::LogContents& log = report.contents;
  sink(fmt::format("{}\n", image));
  sink(summary(report));
  for (std::size_t i = 0; i < log.transactions.size(); ++i) {
    sink(transaction_text(log.transactions[i], report.kinds[i], paint));
  }
  for (const auto& commit : log.fast_commits) sink(fast_commit_text(commit, paint));
  if (report.history) sink(history_text(*report.history, paint));
  sink(findings_text(report.findings, paint));
}

}  // namespace jbdlab::analyze
