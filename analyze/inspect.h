#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/compatibility.h"
#include "analyze/features.h"
#include "analyze/subject.h"
#include "jbd2/finding.h"
#include "jbd2/format/superblock.h"

namespace jbdlab::analyze {

// What the superblocks of a file system and of its journal say, and whether they fit together.
struct FilesystemFacts {
  std::uint32_t block_size = 0;
  std::uint32_t cluster_size = 0;
  std::uint64_t blocks = 0;
  std::uint64_t free_blocks = 0;
  std::uint32_t inodes = 0;
  std::uint32_t free_inodes = 0;
  std::uint32_t inode_size = 0;
  std::uint32_t blocks_per_group = 0;
  std::uint64_t groups = 0;
  std::string label;
  Uuid uuid{};
  std::string state;  // as dumpe2fs prints it
  bool needs_recovery = false;
  Ino first_orphan;  // of the list on disk; 0: none
  FeatureNames features;
};

// Of a journal whose superblock can be read.
struct JournalFacts {
  std::uint32_t version = 2;
  std::uint32_t block_size = 0;
  Uuid uuid{};
  std::uint32_t blocks = 0;
  LogBlock first;
  Tid sequence;
  LogBlock start;
  LogBlock head;
  std::int32_t errno_value = 0;
  std::uint32_t fast_commit_blocks = 0;  // set aside, whether the feature is on or not
  std::vector<std::string> features;
  std::string checksum_type;  // "crc32c" (v2, v3), "crc32" (v1), "none"
  bool checksum_ok = true;    // of the superblock; true also if it has none
};

struct InspectReport {
  std::optional<FilesystemFacts> filesystem;  // not of a bare journal
  JournalLocation location;
  std::optional<JournalFacts> journal;
  std::vector<Requirement> compatibility;
  std::vector<jbd2::Finding> findings;
};

InspectReport inspect(Subject& subject);

}  // namespace jbdlab::analyze
