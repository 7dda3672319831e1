#include "analyze/report_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace jbdlab::analyze {
namespace {

using nlohmann::ordered_json;

// Names and labels on a disk may be any bytes, JSON is UTF-8: what is not becomes U+FFFD.
std::string text_of(const ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

template <class T>
ordered_json or_null(const std::optional<T>& id) {
  return id ? ordered_json(id->value()) : ordered_json(nullptr);
}

ordered_json json_of(const FilesystemFacts& facts) {
  return {{"label", facts.label},
          {"uuid", to_string(facts.uuid)},
          {"block_size", facts.block_size},
          {"cluster_size", facts.cluster_size},
          {"blocks", facts.blocks},
          {"free_blocks", facts.free_blocks},
          {"inodes", facts.inodes},
          {"free_inodes", facts.free_inodes},
          {"inode_size", facts.inode_size},
          {"groups", facts.groups},
          {"blocks_per_group", facts.blocks_per_group},
          {"state", facts.state},
          {"needs_recovery", facts.needs_recovery},
          {"first_orphan", facts.first_orphan.value()},
          {"features",
           {{"compat", facts.features.compat},
            {"incompat", facts.features.incompat},
            {"ro_compat", facts.features.ro_compat}}}};
}

ordered_json journal_json(const InspectReport& report) {
  ordered_json json{{"location", to_string(report.location.kind)}, {"inode", nullptr}};
  if (report.location.inode != Ino{0}) json["inode"] = report.location.inode.value();
  if (report.location.kind == JournalKind::device) {
    json["device_uuid"] = to_string(report.location.device_uuid);
  }
  if (!report.journal) {
    for (const char* key : {"uuid", "blocks", "first", "sequence", "start", "head", "errno",
                            "fast_commit_blocks", "checksum_type", "checksum_ok"}) {
      json[key] = nullptr;
    }
    json["features"] = ordered_json::array();
    return json;
  }
  const JournalFacts& facts = *report.journal;
  json["uuid"] = to_string(facts.uuid);
  json["version"] = facts.version;
  json["block_size"] = facts.block_size;
  json["blocks"] = facts.blocks;
  json["first"] = facts.first.value();
  json["sequence"] = facts.sequence.value();
  json["start"] = facts.start.value();
  json["head"] = facts.head.value();
  json["errno"] = facts.errno_value;
  json["fast_commit_blocks"] = facts.fast_commit_blocks;
  json["features"] = facts.features;
  json["checksum_type"] = facts.checksum_type;
  json["checksum_ok"] = facts.checksum_ok;
  return json;
}

ordered_json json_of(const std::vector<Requirement>& requirements) {
  const auto or_null_text = [](std::string_view text) {
    return text.empty() ? ordered_json(nullptr) : ordered_json(text);
  };
  ordered_json rows = ordered_json::array();
  for (const Requirement& row : requirements) {
    rows.push_back({{"feature", row.feature},
                    {"where", row.where},
                    {"needed_to", row.access},
                    {"kernel", or_null_text(row.kernel)},
                    {"e2fsprogs", or_null_text(row.e2fsprogs)},
                    {"grub", or_null_text(row.grub)},
                    {"source", row.source}});
  }
  return rows;
}

ordered_json flags_of(std::uint32_t flags) {
  struct Flag {
    std::uint32_t bit;
    const char* name;
  };
  ordered_json names = ordered_json::array();
  for (const Flag& flag :
       {Flag{jbd2::tag_flag::kEscape, "escape"}, Flag{jbd2::tag_flag::kSameUuid, "same_uuid"},
        Flag{jbd2::tag_flag::kDeleted, "deleted"}, Flag{jbd2::tag_flag::kLastTag, "last_tag"}}) {
    if ((flags & flag.bit) != 0) names.push_back(flag.name);
  }
  return names;
}

ordered_json json_of(const jbd2::LogTransaction& transaction, const std::vector<BlockKind>& kinds) {
  ordered_json blocks = ordered_json::array();
  for (std::size_t i = 0; i < transaction.blocks.size(); ++i) {
    const jbd2::LoggedBlock& block = transaction.blocks[i];
    blocks.push_back({{"fs_block", block.fs_block.value()},
                      {"log_block", block.log_block.value()},
                      {"kind", to_string(kinds[i])},
                      {"flags", flags_of(block.flags)},
                      {"checksum", to_string(block.checksum)}});
  }
  ordered_json revoked = ordered_json::array();
  for (const jbd2::RevokedBlock& block : transaction.revoked) {
    revoked.push_back(block.fs_block.value());
  }
  return {{"tid", transaction.tid.value()},
          {"log_block", transaction.first.value()},
          {"commit_log_block", or_null(transaction.commit)},
          {"commit_time_ns", transaction.time ? ordered_json(transaction.time->since_epoch_ns())
                                              : ordered_json(nullptr)},
          {"state", to_string(transaction.state)},
          {"checksums",
           {{"commit", to_string(transaction.commit_checksum)},
            {"control", to_string(transaction.control_checksum)},
            {"data", to_string(transaction.data_checksum)}}},
          {"blocks", std::move(blocks)},
          {"revoked", std::move(revoked)},
          {"changes", ordered_json::array()}};
}

// A tag with the fields that it has.
ordered_json json_of(const jbd2::FastCommitEntry& tag) {
  using jbd2::FcTag;
  ordered_json json{{"tag", to_string(tag.tag)}};
  switch (tag.tag) {
    case FcTag::add_range:
      json["ino"] = tag.ino.value();
      json["lblk"] = tag.lblk.value();
      json["pblk"] = tag.pblk.value();
      json["len"] = tag.len;
      json["unwritten"] = tag.unwritten;
      break;
    case FcTag::del_range:
      json["ino"] = tag.ino.value();
      json["lblk"] = tag.lblk.value();
      json["len"] = tag.len;
      break;
    case FcTag::creat:
    case FcTag::link:
    case FcTag::unlink:
      json["ino"] = tag.ino.value();
      json["parent"] = tag.parent.value();
      json["name"] = tag.name;
      break;
    case FcTag::inode:
      json["ino"] = tag.ino.value();
      json["len"] = tag.len;
      break;
    case FcTag::head:
      json["tid"] = tag.tid.value();
      json["features"] = tag.features;
      break;
    case FcTag::tail:
      json["tid"] = tag.tid.value();
      break;
    case FcTag::pad:
      break;
  }
  return json;
}

ordered_json json_of(const jbd2::LogFastCommit& commit) {
  ordered_json tags = ordered_json::array();
  for (const jbd2::FastCommitEntry& tag : commit.tags) tags.push_back(json_of(tag));
  return {{"tid", commit.tid.value()}, {"log_block", commit.log_block.value()},
          {"blocks", commit.blocks},   {"state", to_string(commit.state)},
          {"crc_ok", commit.crc_ok},   {"tags", std::move(tags)}};
}

ordered_json json_of(const InodeFacts& facts) {
  return {{"mode", facts.mode},
          {"uid", facts.uid},
          {"gid", facts.gid},
          {"size", facts.size},
          {"links", facts.links},
          {"sectors", facts.sectors},
          {"flags", facts.flags},
          {"generation", facts.generation},
          {"atime_ns", facts.atime_ns},
          {"ctime_ns", facts.ctime_ns},
          {"mtime_ns", facts.mtime_ns},
          {"crtime_ns", facts.crtime_ns ? ordered_json(*facts.crtime_ns) : ordered_json(nullptr)},
          {"dtime", facts.dtime}};
}

ordered_json json_of(const InodeVersion& version) {
  return {{"source", to_string(version.source)},
          {"tid", version.tid.value()},
          {"state", to_string(version.state)},
          {"commit_time_ns",
           version.commit_time_ns ? ordered_json(*version.commit_time_ns) : ordered_json(nullptr)},
          {"log_block", version.log_block.value()},
          {"checksum", to_string(version.checksum)},
          {"inode", json_of(version.facts)},
          {"changed", version.changed}};
}

// `"key": [ … ]` with an element a line.
template <class Each>
void write_lines(const Sink& sink, std::string_view key, std::size_t count, Each each) {
  sink("  \"");
  sink(key);
  sink("\": [");
  for (std::size_t i = 0; i < count; ++i) {
    sink(i == 0 ? "\n    " : ",\n    ");
    sink(text_of(each(i)));
  }
  sink(count == 0 ? "]" : "\n  ]");
}

}  // namespace

ordered_json json_of(const std::vector<jbd2::Finding>& findings) {
  ordered_json rows = ordered_json::array();
  for (const jbd2::Finding& finding : findings) {
    rows.push_back({{"id", finding.kind->id},
                    {"severity", to_string(finding.severity)},
                    {"text", finding.text},
                    {"advice", finding.kind->advice},
                    {"tid", or_null(finding.place.tid)},
                    {"log_block", or_null(finding.place.log_block)},
                    {"fs_block", or_null(finding.place.fs_block)}});
  }
  return rows;
}

void write_inspect_json(const InspectReport& report, std::string_view image, const Sink& sink) {
  ordered_json json{{"schema", "jbdlab.inspect/1"}, {"image", image}};
  json["filesystem"] = report.filesystem ? json_of(*report.filesystem) : ordered_json(nullptr);
  json["journal"] = journal_json(report);
  json["compatibility"] = json_of(report.compatibility);
  json["findings"] = json_of(report.findings);
  sink(text_of(json, 2));
  sink("\n");
}

void write_log_json(const LogReport& report, std::string_view image, const Sink& sink) {
  const jbd2::LogContents& log = report.contents;
  sink("{\n  \"schema\": \"jbdlab.log/1\",\n  \"image\": ");
  sink(text_of(image));
  sink(",\n  \"journal\": ");
  sink(text_of({{"location", to_string(report.location.kind)},
                {"block_size", report.block_size},
                {"blocks", log.superblock.block_count()},
                {"first", log.geometry.first().value()},
                {"end", log.geometry.end().value()},
                {"sequence", log.superblock.sequence().value()},
                {"start", log.superblock.start().value()},
                {"next_tid", log.end.value()},
                {"next_log_block", log.end_block.value()}}));
  sink(",\n");
  write_lines(sink, "transactions", log.transactions.size(),
              [&](std::size_t i) { return json_of(log.transactions[i], report.kinds[i]); });
  sink(",\n");
  write_lines(sink, "fast_commits", log.fast_commits.size(),
              [&](std::size_t i) { return json_of(log.fast_commits[i]); });
  if (report.history) {
    const InodeHistory& history = *report.history;
    sink(fmt::format(",\n  \"inode\": {},\n  \"on_disk\": {},\n", history.ino.value(),
                     history.on_disk ? text_of(json_of(*history.on_disk)) : "null"));
    write_lines(sink, "history", history.versions.size(),
                [&](std::size_t i) { return json_of(history.versions[i]); });
  }
  const ordered_json findings = json_of(report.findings);
  sink(",\n");
  write_lines(sink, "findings", findings.size(), [&](std::size_t i) { return findings[i]; });
  sink("\n}\n");
}

}  // namespace jbdlab::analyze
