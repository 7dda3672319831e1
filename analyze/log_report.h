#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/block_kind.h"
#include "analyze/inode_history.h"
#include "analyze/subject.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/log_reader.h"

namespace jbdlab::analyze {

struct LogOptions {
  bool all = false;  // also what recovery does not look at any more
  // Only transactions and fast commits from `first` to `last`, both included.
  struct Tids {
    Tid first;
    Tid last;
  };
  std::optional<Tids> tids;
  // Only what this inode is in: the block of its inode table, and its tags in fast commits. The
  // report then has its history.
  std::optional<Ino> inode;
};

// Every transaction and fast commit of a journal, and what each block in it is.
struct LogReport {
  JournalLocation location;
  std::uint32_t block_size = 0;
  std::optional<bool> needs_recovery;  // what the file system says; nothing for a bare journal
  jbd2::LogContents contents;          // what `options` left of it
  bool whole = true;                   // nothing was left out because of options.tids or .inode
  std::vector<std::vector<BlockKind>> kinds;  // of contents.transactions[i].blocks[j]
  std::optional<InodeHistory> history;        // of options.inode
  std::vector<jbd2::Finding> findings;        // all of them, those of the journal's location first

  BlockKind kind(std::size_t transaction, std::size_t block) const {
    return kinds[transaction][block];
  }
};

// Errors: not_found (there is no journal), what read_log() says of a superblock that cannot be
// used, and usage (an inode that the file system does not have).
Result<LogReport> read_log_report(Subject& subject, const LogOptions& options);

}  // namespace jbdlab::analyze
