// Whatever the machine writes into the log, the log reader reads, in every format.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "jbd2/format/header.h"
#include "jbd2/log_reader.h"
#include "tests/unit/jbd2/machine_driver.h"

namespace jbdlab::jbd2 {
namespace {

struct FormatRow {
  const char* name;
  JournalKind kind;
};
constexpr FormatRow kFormats[] = {
    {"v3_64bit_1k", {ChecksumMode::v3, true, 1024, false, 0, 1024}},
    {"v3_64bit_2k", {ChecksumMode::v3, true, 2048, false, 0, 1024}},
    {"v3_64bit_4k", {ChecksumMode::v3, true, 4096, false, 0, 1024}},
    {"v3_32bit_4k", {ChecksumMode::v3, false, 4096, false, 0, 1024}},
    {"v3_64bit_1k_with_fast_commit_area", {ChecksumMode::v3, true, 1024, false, 64, 1088}},
    {"v2_64bit_1k", {ChecksumMode::v2, true, 1024, false, 0, 1024}},
    {"v2_64bit_4k", {ChecksumMode::v2, true, 4096, false, 0, 1024}},
    {"v2_32bit_2k", {ChecksumMode::v2, false, 2048, false, 0, 1024}},
    {"v1_64bit_1k", {ChecksumMode::v1, true, 1024, false, 0, 1024}},
    {"v1_32bit_4k", {ChecksumMode::v1, false, 4096, false, 0, 1024}},
    {"none_64bit_2k", {ChecksumMode::none, true, 2048, false, 0, 1024}},
    {"none_32bit_1k", {ChecksumMode::none, false, 1024, false, 0, 1024}},
    {"none_32bit_4k", {ChecksumMode::none, false, 4096, false, 0, 1024}},
};

// What a transaction was made of.
struct Made {
  std::map<FsBlock, std::uint64_t> images;
  std::vector<FsBlock> revoked;  // in the order of their numbers
};

class MachineLog : public testing::TestWithParam<FormatRow> {};

// Transactions of up to 280 blocks, escaped ones among them, and of revokes, through several turns
// of the ring and over the wrap of the tid. After each the whole live log is read back.
TEST_P(MachineLog, IsReadBackWithoutFindings) {
  const JournalKind& kind = GetParam().kind;
  MachineDriver driver({.kind = kind, .sequence = Tid{0xFFFF'FFF0}, .head = LogBlock{900}});
  Random dice(11);
  std::map<std::uint32_t, Made> made;  // by tid
  const std::uint64_t high = kind.is_64bit ? std::uint64_t{1} << 32 : 0;
  constexpr std::uint32_t kRounds = 60;
  std::uint32_t log_blocks = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    Handle handle;
    const std::uint32_t blocks = dice.below(4) == 0 ? dice.below(280) : dice.below(20);
    const std::uint32_t revokes = dice.below(3) == 0 ? dice.below(300) : 0;
    driver.start(handle, {.credits = blocks, .revoke_records = revokes});
    const Tid tid = handle.transaction->tid;
    Made& m = made[tid.value()];
    for (std::uint32_t n = 0; n < blocks; ++n) {
      const FsBlock block{high + dice.below(400)};
      // Every other block begins with the journal's magic.
      const std::uint64_t value =
          dice.below(2) == 0 ? std::uint64_t{kMagic} << 32 | dice.below(1000) : dice.next() >> 1;
      driver.write(handle, block, value);
      m.images[block] = value;
    }
    for (std::uint32_t n = 0; n < revokes; ++n) {
      m.revoked.push_back(FsBlock{high + 100'000 * (round + 1) + n});
      driver.free(handle, m.revoked.back());
    }
    driver.stop(handle);
    driver.commit();

    BlockRefSource source = journal_of(driver.disk().now(), kind);
    const auto log = read_log(source, {.fs_block_count = high + 10'000'000});
    ASSERT_TRUE(log);
    ASSERT_EQ(finding_ids(*log), "");
    ASSERT_EQ(log->end, tid.next());
    ASSERT_EQ(log->end_block, driver.journal().head());
    ASSERT_EQ(log->superblock.start(), driver.journal().tail());
    // Nothing but what is live: the transactions from the tail on, and no block more.
    std::uint32_t used = 0;
    for (const LogTransaction& t : log->transactions) {
      ASSERT_EQ(t.state, LogState::replayable);
      used += static_cast<std::uint32_t>(t.control.size() + t.blocks.size());
      const Made& want = made.at(t.tid.value());
      ASSERT_EQ(t.blocks.size(), want.images.size());
      for (const LoggedBlock& b : t.blocks) {
        ASSERT_EQ(value_of(source.at(b.log_block)), want.images.at(b.fs_block));
        const bool escaped = want.images.at(b.fs_block) >> 32 == kMagic;
        ASSERT_EQ((b.flags & tag_flag::kEscape) != 0, escaped);
        ASSERT_EQ(get_be<std::uint32_t>(source.at(b.log_block).bytes(), 0),
                  escaped ? 0 : want.images.at(b.fs_block) >> 32);
        ASSERT_EQ(b.checksum,
                  driver.journal().format().has_block_checksums() ? Verdict::good : Verdict::none);
      }
      std::vector<FsBlock> revoked;
      for (const RevokedBlock& r : t.revoked) revoked.push_back(r.fs_block);
      ASSERT_EQ(revoked, want.revoked);
    }
    log_blocks += static_cast<std::uint32_t>(log->transactions.back().control.size() +
                                             log->transactions.back().blocks.size());
    ASSERT_EQ(used, driver.journal().geometry().count() - driver.journal().free_blocks());
  }
  EXPECT_GT(log_blocks, 2 * driver.journal().geometry().count());  // more than two turns
  driver.run(driver.journal().shut_down());
  BlockRefSource source = journal_of(driver.disk().now(), kind);
  const auto log = read_log(source);
  ASSERT_TRUE(log);
  EXPECT_EQ(finding_ids(*log), "");
  EXPECT_TRUE(log->transactions.empty());
  EXPECT_EQ(log->end_block, driver.journal().head());
  // And every block is home, as it was written last.
  std::map<FsBlock, std::uint64_t> newest;
  for (std::uint32_t n = 0; n < kRounds; ++n) {
    for (const auto& [block, value] : made[0xFFFF'FFF1U + n].images) newest[block] = value;
  }
  const TestDisk::Contents disk = driver.disk().now();
  for (const auto& [block, value] : newest) {
    ASSERT_EQ(value_of(disk.at(TestDisk::home(block))), value) << block.value();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, MachineLog, testing::ValuesIn(kFormats),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace jbdlab::jbd2
