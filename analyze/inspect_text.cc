#include <fmt/core.h>

#include "analyze/report_text.h"
#include "analyze/text_style.h"

namespace jbdlab::analyze {
namespace {

constexpr std::size_t kLabelWidth = 14;
constexpr std::size_t kValueColumn = 2 + kLabelWidth + 1;

std::string row(std::string_view label, std::string_view value) {
  return fmt::format("  {:<{}} {}\n", label, kLabelWidth, fill(value, kValueColumn, kValueColumn));
}

std::string words_row(std::string_view label, const std::vector<std::string>& words) {
  return fmt::format("  {:<{}} {}\n", label, kLabelWidth,
                     words.empty() ? "none" : fill(words, kValueColumn, kValueColumn));
}

std::string filesystem_text(const FilesystemFacts& facts, const Paint& paint) {
  std::vector<std::string> features = facts.features.compat;
  for (const auto* more : {&facts.features.incompat, &facts.features.ro_compat}) {
    features.insert(features.end(), more->begin(), more->end());
  }
  std::string text = paint.bold("File system") + "\n";
  text += row("UUID", to_string(facts.uuid));
  if (!facts.label.empty()) text += row("Label", name_text(facts.label));
  text +=
      row("Blocks", fmt::format("{} of {} ({}), {} free", facts.blocks, size_text(facts.block_size),
                                size_text(facts.blocks * facts.block_size), facts.free_blocks));
  if (facts.cluster_size != facts.block_size) {
    text += row("Clusters", fmt::format("of {}", size_text(facts.cluster_size)));
  }
  text += row("Inodes", fmt::format("{} of {} bytes, {} free", facts.inodes, facts.inode_size,
                                    facts.free_inodes));
  text += row("Groups", fmt::format("{} of {} blocks", facts.groups, facts.blocks_per_group));
  text += row("State",
              fmt::format("{}{}", facts.state, facts.needs_recovery ? ", needs recovery" : ""));
  if (facts.first_orphan != Ino{0}) {
    text +=
        row("Orphans", fmt::format("a list that begins with inode {}", facts.first_orphan.value()));
  }
  return text + words_row("Features", features);
}

std::string log_row(const JournalFacts& facts) {
  if (facts.start != LogBlock{0}) {
    return row("Log", fmt::format("begins at block {} with transaction {}", facts.start.value(),
                                  facts.sequence.value()));
  }
  const LogBlock next = facts.head == LogBlock{0} ? facts.first : facts.head;
  return row("Log", fmt::format("empty; the next transaction is {}, at block {}",
                                facts.sequence.next().value(), next.value()));
}

std::string journal_text(const InspectReport& report, const Paint& paint) {
  std::string text = "\n" + paint.bold("Journal") + "\n";
  switch (report.location.kind) {
    case JournalKind::none:
      return text + row("Location", "none");
    case JournalKind::inode:
      text += row("Location", report.location.inode == Ino{0}
                                  ? std::string{"a file of its own"}
                                  : fmt::format("inode {}", report.location.inode.value()));
      break;
    case JournalKind::device:
      text += row("Location", fmt::format("device {}", to_string(report.location.device_uuid)));
      break;
  }
  if (!report.journal) return text;
  const JournalFacts& facts = *report.journal;
  text += row("UUID", to_string(facts.uuid));
  text += row(
      "Blocks",
      fmt::format("{} of {} ({}), ring from block {} on", facts.blocks, size_text(facts.block_size),
                  size_text(std::uint64_t{facts.blocks} * facts.block_size), facts.first.value()));
  if (facts.fast_commit_blocks != 0) {
    text += row("Fast commits", fmt::format("{} blocks at the end", facts.fast_commit_blocks));
  }
  text += log_row(facts);
  if (facts.errno_value != 0) text += row("Error", fmt::format("{}", facts.errno_value));
  text +=
      row("Checksums", fmt::format("{}{}", facts.checksum_type,
                                   facts.checksum_ok ? "" : ", that of the superblock is wrong"));
  return text + words_row("Features", facts.features);
}

std::string compatibility_text(const std::vector<Requirement>& rows, const Paint& paint) {
  if (rows.empty()) return {};
  std::string text = "\n" + paint.bold("First release that knows each feature") + "\n";
  text += paint.dim(fmt::format("  {:<22} {:<10} {:>7} {:>10} {:>6}  {}\n", "feature", "of",
                                "Linux", "e2fsprogs", "GRUB", "an older Linux"));
  for (const Requirement& needs : rows) {
    const std::string_view older = needs.access == "mount"   ? "does not mount it"
                                   : needs.access == "write" ? "mounts it read-only"
                                                             : "ignores it";
    const auto or_dash = [](std::string_view version) { return version.empty() ? "-" : version; };
    text +=
        fmt::format("  {:<22} {:<10} {:>7} {:>10} {:>6}  {}\n", needs.feature, needs.where,
                    or_dash(needs.kernel), or_dash(needs.e2fsprogs), or_dash(needs.grub), older);
  }
  return text;
}

}  // namespace

void write_inspect_text(const InspectReport& report, std::string_view image, TextOptions options,
                        const Sink& sink) {
  const Paint paint{options.color};
  sink(fmt::format("{}\n\n", image));
  if (report.filesystem) sink(filesystem_text(*report.filesystem, paint));
  sink(journal_text(report, paint));
  sink(compatibility_text(report.compatibility, paint));
  sink(findings_text(report.findings, paint));
}

}  // namespace jbdlab::analyze
