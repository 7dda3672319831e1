#include "analyze/log_csv.h"

#include <fmt/core.h>

#include <string>

#include "analyze/text_style.h"

namespace jbdlab::analyze {
namespace {

using jbd2::FcTag;

// A file's name, in quotes: it may hold anything.
std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name_text(name)) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

template <class Id>
std::string or_nothing(Id id, bool has) {
  return has ? fmt::format("{}", id.value()) : std::string{};
}

std::string time_column(const std::optional<std::uint64_t>& ns) {
  return ns ? fmt::format("{}", *ns) : std::string{};
}

void write_transaction(const jbd2::LogTransaction& transaction, const std::vector<BlockKind>& kinds,
                       const Sink& sink) {
  std::optional<std::uint64_t> time;
  if (transaction.time) time = transaction.time->since_epoch_ns();
  const std::string common = fmt::format("{},{},{}", transaction.tid.value(),
                                         to_string(transaction.state), time_column(time));
  for (std::size_t i = 0; i < transaction.blocks.size(); ++i) {
    const jbd2::LoggedBlock& block = transaction.blocks[i];
    sink(fmt::format("block,{},{},{},{},{},,,,,,\n", common, block.log_block.value(),
                     block.fs_block.value(), to_string(kinds[i]), to_string(block.checksum)));
  }
  for (const jbd2::RevokedBlock& block : transaction.revoked) {
    sink(fmt::format("revoke,{},{},{},,,,,,,,\n", common, block.log_block.value(),
                     block.fs_block.value()));
  }
}

void write_fast_commit(const jbd2::LogFastCommit& commit, const Sink& sink) {
  for (const jbd2::FastCommitEntry& tag : commit.tags) {
    const bool add = tag.tag == FcTag::add_range, del = tag.tag == FcTag::del_range;
    const bool entry =
        tag.tag == FcTag::creat || tag.tag == FcTag::link || tag.tag == FcTag::unlink;
    const bool inode = tag.tag == FcTag::inode;
    sink(fmt::format(
        "{},{},{},,{},{},,{},{},{},{},{},{},{}\n", to_string(tag.tag), commit.tid.value(),
        to_string(commit.state), tag.log_block.value(), or_nothing(tag.pblk, add),
        commit.crc_ok ? "good" : "bad", or_nothing(tag.ino, add || del || entry || inode),
        or_nothing(tag.parent, entry), entry ? quoted(tag.name) : std::string{},
        or_nothing(tag.lblk, add || del), add || del ? fmt::format("{}", tag.len) : std::string{},
        !add            ? ""
        : tag.unwritten ? "1"
                        : "0"));
  }
}

void write_history(const InodeHistory& history, const Sink& sink) {
  sink(
      "source,tid,state,commit_time_ns,log_block,checksum,mode,uid,gid,size,links,sectors,flags,"
      "generation,atime_ns,ctime_ns,mtime_ns,crtime_ns,dtime,changed\n");
  const auto facts_columns = [](const InodeFacts& facts) {
    return fmt::format("{:o},{},{},{},{},{},{},{},{},{},{},{},{}", facts.mode, facts.uid, facts.gid,
                       facts.size, facts.links, facts.sectors, facts.flags, facts.generation,
                       facts.atime_ns, facts.ctime_ns, facts.mtime_ns,
                       facts.crtime_ns ? fmt::format("{}", *facts.crtime_ns) : std::string{},
                       facts.dtime);
  };
  for (const InodeVersion& version : history.versions) {
    std::string changed;
    for (const std::string_view name : version.changed) {
      changed += fmt::format("{}{}", changed.empty() ? "" : " ", name);
    }
    sink(fmt::format("{},{},{},{},{},{},{},{}\n", to_string(version.source), version.tid.value(),
                     to_string(version.state), time_column(version.commit_time_ns),
                     version.log_block.value(), to_string(version.checksum),
                     facts_columns(version.facts), changed));
  }
  if (history.on_disk) sink(fmt::format("disk,,,,,,{},\n", facts_columns(*history.on_disk)));
}

}  // namespace

void write_log_csv(const LogReport& report, const Sink& sink) {
  if (report.history) {
    write_history(*report.history, sink);
    return;
  }
  sink(
      "record,tid,state,commit_time_ns,log_block,fs_block,kind,checksum,ino,parent,name,lblk,len,"
      "unwritten\n");
  for (std::size_t i = 0; i < report.contents.transactions.size(); ++i) {
    write_transaction(report.contents.transactions[i], report.kinds[i], sink);
  }
  for (const auto& commit : report.contents.fast_commits) write_fast_commit(commit, sink);
}

}  // namespace jbdlab::analyze
