// Journals that debugfs (e2fsprogs) wrote, in every tag layout, made on the spot.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "jbd2/block_source.h"
#include "jbd2/format/header.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

struct Row {
  const char* name;
  const char* mkfs_features;  // for mke2fs -O
  const char* journal_open;   // options of debugfs journal_open
  std::uint32_t block_size;
  std::uint32_t tag_size;
  ChecksumMode checksums;
  std::string_view states;
};
// With "-c", and without metadata_csum, debugfs turns on v1. Its sum for a transaction of revokes
// only is not the kernel's, and Linux 6.18 and e2fsck 1.47 call that transaction corrupt, too.
constexpr Row kRows[] = {
    {"v3_64bit", "64bit,metadata_csum", "-c -v 3", 4096, 16, ChecksumMode::v3,
     "1 replayable, 2 replayable"},
    {"v3_32bit_1k", "^64bit,metadata_csum", "-c -v 3", 1024, 16, ChecksumMode::v3,
     "1 replayable, 2 replayable"},
    {"v2_64bit_1k", "64bit,metadata_csum", "-c -v 2", 1024, 14, ChecksumMode::v2,
     "1 replayable, 2 replayable"},
    {"v2_32bit", "^64bit,metadata_csum", "-c -v 2", 4096, 10, ChecksumMode::v2,
     "1 replayable, 2 replayable"},
    {"none_64bit_2k", "64bit,^metadata_csum", "", 2048, 12, ChecksumMode::none,
     "1 replayable, 2 replayable"},
    {"none_32bit", "^64bit,^metadata_csum", "", 4096, 8, ChecksumMode::none,
     "1 replayable, 2 replayable"},
    {"v1_64bit_1k", "64bit,^metadata_csum", "-c", 1024, 12, ChecksumMode::v1,
     "1 replayable, 2 corrupt"},
};

class Debugfs : public testing::TestWithParam<Row> {};

TEST_P(Debugfs, JournalIsRead) {
  if (!test::run({"mke2fs", "-V"}).ok() || !test::run({"debugfs", "-V"}).ok()) {
    GTEST_SKIP() << "mke2fs and debugfs are not installed";
  }
  const Row& row = GetParam();
  const test::TempDir folder;
  const std::string image = folder.path() / "image";
  const std::string blocks = folder.path() / "blocks";
  const std::string commands = folder.path() / "commands";
  const std::string journal = folder.path() / "journal";
  test::must_run({"mke2fs", "-q", "-F", "-t", "ext4", "-b", std::to_string(row.block_size), "-J",
                  "size=" + std::to_string(row.block_size / 1024), "-O", row.mkfs_features, image,
                  std::to_string(32 * row.block_size / 1024) + "M"});
  // Three blocks of text; the second begins with the magic and has to be escaped.
  std::string contents(3 * row.block_size, 'a');
  const auto magic = from_hex("c03b3998");
  for (std::size_t i = 0; i < 4; ++i) contents[row.block_size + i] = static_cast<char>(magic[i]);
  test::write_file(blocks, contents);
  test::write_file(commands, "jo " + std::string(row.journal_open) + "\njw -b 20000,20001,20002 " +
                                 blocks + "\njw -r 20005,20006\njc\ndump <8> " + journal + "\n");
  test::must_run({"debugfs", "-w", "-f", commands, image});

  const std::string dumped = test::read_file(journal);
  MemoryBlockSource source(std::as_bytes(std::span(dumped)), row.block_size);
  const auto log = read_log(source);
  ASSERT_TRUE(log) << log.error().what;
  EXPECT_EQ(log->format.tag.size, row.tag_size);
  EXPECT_EQ(log->format.checksums, row.checksums);
  EXPECT_EQ(states(*log), row.states);
  ASSERT_EQ(log->transactions.size(), 2U);
  const LogTransaction& data = log->transactions[0];
  ASSERT_EQ(data.blocks.size(), 3U);
  const Verdict want = log->format.has_block_checksums() ? Verdict::good : Verdict::none;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(data.blocks[i].fs_block, FsBlock{20000 + i});
    EXPECT_EQ(data.blocks[i].log_block, LogBlock{2 + i});
    EXPECT_EQ((data.blocks[i].flags & tag_flag::kEscape) != 0, i == 1);
    EXPECT_EQ(data.blocks[i].checksum, want);
  }
  const LogTransaction& revokes = log->transactions[1];
  ASSERT_EQ(revokes.revoked.size(), 2U);
  EXPECT_EQ(revokes.revoked[0].fs_block, FsBlock{20005});
  EXPECT_EQ(revokes.revoked[1].fs_block, FsBlock{20006});
  // Not the half of a field that debugfs puts the seconds into.
  EXPECT_GT(data.time->since_epoch_ns(), 1'500'000'000ULL * 1'000'000'000);
  EXPECT_LT(data.time->since_epoch_ns(), 4'200'000'000ULL * 1'000'000'000);
}

INSTANTIATE_TEST_SUITE_P(Rows, Debugfs, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace jbdlab::jbd2
