#pragma once

#include <cstdint>
#include <vector>

#include "base/block_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "jbd2/format/commit.h"
#include "jbd2/format/geometry.h"
#include "jbd2/format/log_format.h"

// Writes transactions as the kernel lays them out: revoke blocks, then descriptors each followed by
// its data blocks, then the commit block (jbd2_journal_commit_transaction in fs/jbd2/commit.c).
namespace jbdlab::jbd2 {

struct LogWrite {
  LogBlock log_block;
  BlockRef contents;
};

struct TransactionImage {
  struct Block {
    FsBlock fs_block;
    BlockRef contents;  // as the file system wants it: the writer escapes
  };
  Tid tid;
  CommitTime time;
  std::vector<FsBlock> revoked;
  std::vector<Block> blocks;  // in the order in which they shall stand in the log
};

struct WrittenTransaction {
  std::vector<LogWrite> writes;  // in log order; the last is the commit block
  LogBlock head;                 // where the next transaction goes
};

// How many log blocks write_transaction() takes.
std::uint64_t log_blocks_needed(const LogFormat& format, std::uint64_t blocks,
                                std::uint64_t revoked) noexcept;

// Lays out `transaction` from `head` on, wrapping at the end of the ring. Errors: no_space (it
// needs more blocks than the ring has), invalid (a block number that the log cannot express, a
// block of the wrong size).
Result<WrittenTransaction> write_transaction(const LogFormat& format, const Geometry& geometry,
                                             LogBlock head, const TransactionImage& transaction);

}  // namespace jbdlab::jbd2
