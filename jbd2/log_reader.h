#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "jbd2/block_source.h"
#include "jbd2/finding.h"
#include "jbd2/format/commit.h"
#include "jbd2/format/descriptor.h"
#include "jbd2/format/fast_commit.h"
#include "jbd2/format/geometry.h"
#include "jbd2/format/log_format.h"
#include "jbd2/format/superblock.h"

// Reads a whole journal: which transactions and fast commits are in it, which of them recovery
// would take, and what is wrong. Follows the kernel's scan (do_one_pass in fs/jbd2/recovery.c,
// ext4_fc_replay_scan in fs/ext4/fast_commit.c), except where that would loop for ever or give up
// on a sound log; journal-format.md, sections 8 and 10.
namespace jbdlab::jbd2 {

// What the log alone says of a transaction or a fast commit.
enum class LogState : std::uint8_t {
  replayable,  // recovery from the superblock's start takes it
  stale,       // an older generation, behind the end of the log
  incomplete,  // begins where the log goes on, but has no valid commit: the crash came first
  corrupt,     // in the live range, and a check fails (or it lies behind one that fails)
};
std::string_view to_string(LogState state) noexcept;

enum class Verdict : std::uint8_t {
  none,  // there is no checksum to check
  good,
  bad,
  torn,  // commit block: good if all behind its header counts as zero
};
std::string_view to_string(Verdict verdict) noexcept;

struct LoggedBlock {
  FsBlock fs_block;
  LogBlock log_block;
  std::uint32_t flags = 0;  // tag_flag
  Verdict checksum = Verdict::none;
};

struct RevokedBlock {
  FsBlock fs_block;
  LogBlock log_block;  // the revoke block that says so
};

struct ControlBlock {  // descriptor, revoke or commit block
  LogBlock log_block;
  BlockType type = BlockType::descriptor;
  Verdict checksum = Verdict::none;
};

struct LogTransaction {
  Tid tid;
  LogBlock first;                  // its first block: descriptor, revoke or (if empty) commit
  std::optional<LogBlock> commit;  // its commit block, if there is one
  std::optional<CommitTime> time;  // of the commit block
  LogState state = LogState::incomplete;
  // Recovery walks it: it lies before the end of the log. Of a corrupt transaction, single blocks
  // are then bad and the others good; false if recovery stops before it.
  bool before_end = false;
  Verdict commit_checksum = Verdict::none;
  Verdict control_checksum = Verdict::none;  // descriptor and revoke blocks: the worst
  Verdict data_checksum = Verdict::none;     // data blocks: the worst
  std::vector<ControlBlock> control;         // in log order, the commit block last
  std::vector<LoggedBlock> blocks;           // in log order
  std::vector<RevokedBlock> revoked;
};

// One TLV of a fast commit. Which fields count depends on the tag (fast_commit.h).
struct FastCommitEntry {
  FcTag tag = FcTag::pad;
  LogBlock log_block;          // where it stands,
  std::uint32_t offset = 0;    // its header's byte in that block
  std::uint32_t length = 0;    // of its value
  Ino ino{0};                  // add_range, del_range, creat, link, unlink, inode
  Ino parent{0};               // creat, link, unlink
  std::string name;            // creat, link, unlink; any bytes
  LogicalBlock lblk{0};        // add_range, del_range
  FsBlock pblk{0};             // add_range
  std::uint32_t len = 0;       // add_range, del_range: blocks; inode: bytes of the inode
  bool unwritten = false;      // add_range
  Tid tid;                     // head, tail
  std::uint32_t features = 0;  // head
};

struct LogFastCommit {
  Tid tid;             // of its TAIL (or HEAD, if there is no TAIL)
  LogBlock log_block;  // its first block
  std::uint32_t blocks = 0;
  LogState state = LogState::incomplete;
  bool crc_ok = false;  // false also if there is no TAIL
  std::vector<FastCommitEntry> tags;
};

struct LogContents {
  LogSuperblock superblock;
  LogFormat format;
  Geometry geometry;
  // In log order; then, with `all`, the stale ones in ring order from the end of the log.
  std::vector<LogTransaction> transactions;
  std::vector<LogFastCommit> fast_commits;
  std::vector<Finding> findings;

  // The first tid that recovery does not take, and where the log ends (the block behind the last
  // transaction taken). With an empty log: the superblock's sequence and head, or first if it has
  // no usable one.
  Tid end;
  LogBlock end_block;
};

struct FsBlockRange {
  FsBlock first, end;  // half-open
};

struct LogReadOptions {
  LogBlock superblock{0};  // where it is: on a device of its own, block 1, or 2 with 1 KiB blocks
  bool all = false;        // also stale transactions and fast commits
  std::optional<std::uint64_t> fs_block_count = {};  // a tag that points beyond is a finding
  std::vector<FsBlockRange> journal_blocks = {};     // the journal's own; sorted, disjoint
  std::optional<std::uint32_t> inode_size = {};      // bounds INODE of fast commits; else the block
  std::size_t max_findings = 1000;
};

// Errors: whatever the source says about the superblock's block; bad_magic, unsupported, invalid,
// checksum if the superblock cannot be used. Everything behind the superblock is a finding.
Result<LogContents> read_log(BlockSource& source, const LogReadOptions& options = {});

// What a superblock must agree with.
struct JournalPlace {
  std::uint32_t block_size = 0;
  std::uint32_t block_count = 0;  // of the file or device that holds the journal
};
// Reports every rule that the superblock breaks (journal-format.md, section 3.3). Nothing if it can
// be used; otherwise the first reason that it cannot (what read_log() fails with).
std::optional<Error> check_superblock(const LogSuperblock& superblock, const JournalPlace& place,
                                      FindingLog& findings);

}  // namespace jbdlab::jbd2
