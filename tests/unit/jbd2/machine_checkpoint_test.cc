// Log space: which transaction is checkpointed when, what that writes, and how the tail moves
// (commit-path.md, sections 6 and 13).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/jbd2/machine_driver.h"

namespace jbdlab::jbd2 {
namespace {

constexpr JournalKind ring_of(std::uint32_t blocks) {
  return {.block_size = 4096, .block_count = blocks};
}

std::vector<FsBlock> block_range(std::uint64_t first, std::uint64_t count) {
  std::vector<FsBlock> out;
  for (std::uint64_t b = first; b < first + count; ++b) out.push_back(FsBlock{b});
  return out;
}

// ---- the kernel's checkpoints of 800 and of 500 files created and fsynced

// A move of the log tail: after how many commits it came, what the checkpoint before it wrote and
// had been spared because later transactions logged it again (0 and 0 if only cleaning up was
// needed), and where the tail went.
struct TailRow {
  std::uint32_t commits, written, dropped, to_tid, to_block, freed;
  friend bool operator==(const TailRow&, const TailRow&) = default;
};
void PrintTo(const TailRow& r, std::ostream* out) {
  *out << fmt::format("{{{}, {}, {}, {}, {}, {}}}", r.commits, r.written, r.dropped, r.to_tid,
                      r.to_block, r.freed);
}

// As recorded from Linux 6.18 (groundtruth small_journal_wrap and fsmark_1t, journal off.json):
// jbd2_update_log_tail and jbd2_checkpoint_stats of the run and of the unmount.
constexpr TailRow kWrapRun[] = {
    {82, 0, 0, 3, 9, 8},        {83, 1, 5, 22, 158, 149},   {102, 1, 5, 38, 286, 128},
    {118, 1, 5, 54, 414, 128},  {134, 1, 5, 70, 542, 128},  {150, 1, 5, 86, 670, 128},
    {166, 1, 5, 102, 798, 128}, {182, 1, 5, 118, 926, 128}, {198, 1, 5, 134, 31, 128},
    {214, 1, 5, 150, 159, 128}, {230, 1, 5, 166, 287, 128}, {246, 1, 5, 182, 415, 128},
    {261, 1, 5, 198, 543, 128}, {277, 1, 5, 214, 671, 128}, {293, 1, 5, 230, 799, 128},
    {309, 1, 5, 246, 927, 128}, {325, 1, 5, 259, 8, 104},   {338, 2, 7, 262, 35, 27},
    {342, 1, 5, 278, 163, 128}, {358, 1, 5, 294, 291, 128}, {374, 1, 5, 310, 419, 128},
    {390, 1, 5, 326, 547, 128}, {406, 1, 5, 342, 675, 128}, {422, 1, 5, 358, 803, 128},
    {438, 1, 5, 374, 931, 128}, {454, 1, 5, 390, 36, 128},  {470, 1, 5, 406, 164, 128},
    {486, 1, 5, 422, 292, 128}, {501, 1, 5, 438, 420, 128}, {517, 1, 5, 454, 548, 128},
    {533, 1, 5, 470, 676, 128}, {549, 1, 5, 486, 804, 128}, {565, 1, 5, 502, 935, 131},
    {581, 1, 5, 518, 40, 128},  {597, 1, 5, 534, 168, 128}, {613, 1, 5, 540, 216, 48},
    {619, 2, 7, 550, 299, 83},  {630, 1, 5, 566, 427, 128}, {646, 1, 5, 582, 555, 128},
    {662, 1, 5, 598, 683, 128}, {678, 1, 5, 614, 811, 128}, {694, 1, 5, 630, 939, 128},
    {710, 1, 5, 646, 44, 128},  {726, 1, 5, 662, 172, 128}, {742, 1, 5, 678, 300, 128},
    {758, 1, 5, 694, 428, 128}, {774, 1, 5, 710, 556, 128}, {790, 1, 5, 726, 684, 128}};
constexpr TailRow kWrapUnmount[] = {
    {801, 0, 0, 742, 812, 128}, {801, 0, 0, 758, 940, 128}, {801, 0, 0, 774, 45, 128},
    {801, 0, 0, 787, 149, 104}, {801, 0, 0, 790, 173, 24},  {801, 0, 0, 800, 253, 80},
    {801, 0, 0, 801, 261, 8},   {801, 0, 0, 802, 269, 8},   {801, 0, 0, 803, 277, 8}};
constexpr TailRow kFsmarkRun[] = {
    {338, 0, 0, 3, 9, 8},        {339, 1, 5, 22, 158, 149},  {357, 1, 5, 38, 286, 128},
    {373, 1, 5, 54, 414, 128},   {389, 1, 5, 70, 542, 128},  {405, 1, 5, 86, 670, 128},
    {421, 1, 5, 102, 798, 128},  {437, 1, 5, 118, 926, 128}, {453, 1, 5, 134, 1054, 128},
    {469, 1, 5, 150, 1182, 128}, {485, 1, 5, 166, 1310, 128}};
constexpr TailRow kFsmarkUnmount[] = {
    {501, 0, 0, 182, 1438, 128}, {501, 0, 0, 198, 1566, 128}, {501, 0, 0, 214, 1694, 128},
    {501, 0, 0, 230, 1822, 128}, {501, 0, 0, 246, 1950, 128}, {501, 0, 0, 262, 2081, 131},
    {501, 0, 0, 278, 2209, 128}, {501, 0, 0, 294, 2337, 128}, {501, 0, 0, 310, 2465, 128},
    {501, 0, 0, 326, 2593, 128}, {501, 0, 0, 342, 2721, 128}, {501, 0, 0, 358, 2849, 128},
    {501, 0, 0, 374, 2977, 128}, {501, 0, 0, 390, 3105, 128}, {501, 0, 0, 406, 3233, 128},
    {501, 0, 0, 422, 3361, 128}, {501, 0, 0, 438, 3489, 128}, {501, 0, 0, 454, 3617, 128},
    {501, 0, 0, 470, 3745, 128}, {501, 0, 0, 486, 3873, 128}, {501, 0, 0, 496, 3953, 80},
    {501, 0, 0, 497, 3964, 11},  {501, 0, 0, 501, 3996, 32},  {501, 0, 0, 502, 4004, 8},
    {501, 0, 0, 503, 4012, 8}};

struct LeafOf {
  std::uint32_t file, leaf;
};
// The leaves of the last files, by the hashes of their names: which of them are cold at the end.
constexpr LeafOf kWrapLeaves[] = {{784, 0}, {788, 1}, {792, 1}, {796, 1},
                                  {797, 1}, {798, 2}, {799, 3}};
constexpr LeafOf kFsmarkLeaves[] = {{494, 0}, {495, 1}, {496, 1}, {497, 1}, {498, 1}, {499, 2}};

struct FilesRow {
  const char* name;
  std::uint32_t journal_blocks;
  std::uint32_t files;
  std::span<const LeafOf> leaves;
  std::span<const TailRow> run, unmount;
  std::uint32_t flushes;  // flush-only requests of the run
};
const FilesRow kFiles[] = {
    {"small_journal_wrap", 1024, 800, kWrapLeaves, kWrapRun, kWrapUnmount, 48},
    {"fsmark_1t", 4096, 500, kFsmarkLeaves, kFsmarkRun, kFsmarkUnmount, 11},
};

// Blocks of the file system that this load dirties; itable block k of group 0 is kItable + k.
enum : std::uint64_t {
  kSuper,
  kGroupTable,
  kInodeBitmap,
  kBlockBitmap0,
  kBlockBitmap1,
  kRootDir,
  kDir,
  kLeaf,
  kItable = 100
};
constexpr std::uint64_t itable_of(std::uint32_t ino) { return kItable + (ino - 1) / 16; }

// Blocks of create + write + fsync of file `n` in one directory, in the order of first dirtying;
// the worked example of commit-path.md, section 13.
std::vector<FsBlock> blocks_of_file(std::uint32_t n, std::uint32_t leaf) {
  const std::uint32_t ino = 13 + n;
  std::vector<std::uint64_t> b{kInodeBitmap, kGroupTable, itable_of(ino)};
  if (itable_of(ino) != itable_of(12)) b.push_back(itable_of(12));
  if (n == 256) {  // the directory gets its index
    b.insert(b.end(), {kBlockBitmap0, kLeaf, kDir, kLeaf + 1});
  } else if (n == 493 || n == 537) {  // a leaf splits
    b.insert(b.end(), {kBlockBitmap0, kLeaf + (n == 493 ? 2 : 3), kDir, kLeaf});
  } else {
    b.push_back(n < 256 ? kDir : kLeaf + leaf);
  }
  if (n == 0) b.push_back(kSuper);
  b.push_back(kBlockBitmap1);
  std::vector<FsBlock> out;
  for (const std::uint64_t block : b) out.push_back(FsBlock{block});
  return out;
}

std::uint32_t leaf_of(std::uint32_t n, std::span<const LeafOf> known) {
  for (const LeafOf& k : known) {
    if (k.file == n) return k.leaf;
  }
  return n % (n < 493 ? 2 : n < 537 ? 3 : 4);
}

class FsyncedFiles : public testing::TestWithParam<FilesRow> {};

TEST_P(FsyncedFiles, CheckpointLikeTheKernel) {
  const FilesRow& row = GetParam();
  MachineDriver driver({.kind = ring_of(row.journal_blocks)});
  std::uint32_t commits = 0;
  std::size_t drops_seen = 0, moves_seen = 0;
  const auto moves = [&] {  // since the last call
    std::vector<TailRow> out;
    for (; moves_seen < driver.tail_moves.size(); ++moves_seen) {
      const auto& move = driver.tail_moves[moves_seen];
      out.push_back({commits, 0, 0, move.to.value(), move.block.value(), move.freed});
    }
    for (; drops_seen < driver.drops.size(); ++drops_seen) {
      const auto& drop = driver.drops[drops_seen];
      EXPECT_EQ(drop.forced, 0U);
      if (drop.written == 0 || out.empty()) continue;
      out.back().written = drop.written;
      out.back().dropped = drop.dropped;
    }
    return out;
  };
  // Set-up: mkdir, then syncfs, which writes all of it home.
  driver.change({FsBlock{kInodeBitmap}, FsBlock{kGroupTable}, FsBlock{kItable},
                 FsBlock{kBlockBitmap0}, FsBlock{kDir}, FsBlock{kRootDir}},
                1);
  driver.commit();
  driver.write_all_home();
  ++commits;
  std::vector<TailRow> seen;
  for (std::uint32_t n = 0; n < row.files; ++n) {
    const std::vector<FsBlock> blocks = blocks_of_file(n, leaf_of(n, row.leaves));
    Handle handle;
    driver.start(handle, {.credits = 46, .revoke_records = 8});
    for (const TailRow& move : moves()) seen.push_back(move);
    for (const FsBlock b : blocks) driver.write(handle, b, n);
    driver.stop(handle);
    driver.commit();
    ++commits;
    ASSERT_TRUE(moves().empty());  // a commit frees too little to move the tail
  }
  EXPECT_EQ(seen, std::vector(row.run.begin(), row.run.end()));
  EXPECT_EQ(std::ranges::count(driver.steps, "flush"), row.flushes);
  EXPECT_EQ(driver.checkpoint_results.front(), 0);  // the first one finds a clean transaction
  EXPECT_EQ(std::ranges::count(driver.checkpoint_results, 0), 1);

  driver.write_all_home();  // unmount begins with sync
  const std::size_t before = driver.steps.size();
  driver.run(driver.journal().shut_down());
  EXPECT_EQ(moves(), std::vector(row.unmount.begin(), row.unmount.end()));
  // A flush and a superblock for each, and the last superblock: nothing is left to be written.
  const auto steps = std::span(driver.steps).subspan(before);
  EXPECT_EQ(std::ranges::count(steps, "flush"), row.unmount.size());
  EXPECT_EQ(std::ranges::count_if(steps, [](const auto& s) { return s.starts_with("super"); }),
            row.unmount.size() + 1);
  EXPECT_EQ(std::ranges::count_if(steps, [](const auto& s) { return s.starts_with("home"); }), 0);
}

INSTANTIATE_TEST_SUITE_P(Rows, FsyncedFiles, testing::ValuesIn(kFiles),
                         [](const auto& row) { return std::string(row.param.name); });

// ---- whole transactions are checkpointed while the next one is being written

// 1200 directories in one go (groundtruth small_journal_bigtx): a transaction closes at 292
// blocks; the first handle behind it finds too little space while it is being written.
TEST(BulkLoad, CheckpointsAWholeTransactionDuringTheNextCommit) {
  MachineDriver driver({.kind = ring_of(1024)});
  Journal& journal = driver.journal();
  // Of each transaction that many blocks are logged again by the next one.
  constexpr std::uint32_t kHot = 8;
  constexpr std::uint32_t kCarried[] = {0, 2, 4, 3};  // beside the hot ones, of 2, 3, 4 and 5
  std::uint64_t next = 1000;
  std::vector<FsBlock> carried;
  for (std::uint32_t t = 0; t < 5; ++t) {
    std::vector<FsBlock> blocks = block_range(0, kHot);
    blocks.insert(blocks.end(), carried.begin(), carried.end());
    const std::uint32_t size = t < 4 ? 292 : 161;
    carried = block_range(next, t < 4 ? kCarried[t] : 0);
    while (blocks.size() < size) blocks.push_back(FsBlock{next++});
    for (const FsBlock block : blocks) {
      Handle handle;
      const std::size_t before = driver.steps.size();
      journal.prepare(handle, {.credits = 46, .revoke_records = 8});
      Journal::Start start = journal.start(handle, driver.now());
      if (start == Journal::Start::wait_space) {
        EXPECT_EQ(block, blocks.front());
        EXPECT_GE(t, 3U);
        EXPECT_EQ(journal.space_left(), 1023 - 3 * 295 - 32);
        ASSERT_NE(journal.committing(), nullptr);
        driver.run(journal.make_space());
        ASSERT_NE(journal.committing(), nullptr);  // it goes on beside the checkpoint
        EXPECT_EQ(journal.space_left(), 1023 - 2 * 295 - 32);
        EXPECT_EQ(driver.steps[before], "lock");
        EXPECT_EQ(driver.steps.at(driver.steps.size() - 3), "flush");
        start = journal.start(handle, driver.now());
      }
      ASSERT_EQ(start, Journal::Start::started);
      driver.write(handle, block, t);
      driver.stop(handle);
    }
    if (driver.commit_begun()) driver.commit();
    if (t == 4) break;
    Handle late;
    journal.prepare(late, {.credits = 46, .revoke_records = 8});
    EXPECT_EQ(journal.start(late, driver.now()), Journal::Start::wait_transaction);
    driver.advance_commit_to("log");
  }
  driver.commit();
  driver.write_all_home();
  const std::size_t run_drops = driver.drops.size();
  driver.run(journal.shut_down());

  EXPECT_EQ(run_drops, 2U);
  constexpr MachineDriver::Dropped kDrops[] = {{Tid{2}, 0, 284, 8},
                                               {Tid{3}, 0, 282, 10},
                                               {Tid{4}, 0, 0, 12},
                                               {Tid{5}, 0, 0, 11},
                                               {Tid{6}, 0, 0, 0}};
  ASSERT_EQ(driver.drops.size(), std::size(kDrops));
  for (std::size_t i = 0; i < std::size(kDrops); ++i) {
    SCOPED_TRACE(kDrops[i].tid.value());
    EXPECT_EQ(driver.drops[i].tid, kDrops[i].tid);
    EXPECT_EQ(driver.drops[i].forced, kDrops[i].forced);
    EXPECT_EQ(driver.drops[i].written, kDrops[i].written);
    EXPECT_EQ(driver.drops[i].dropped, kDrops[i].dropped);
  }
  constexpr std::uint32_t kTails[] = {296, 591, 886, 158, 321};
  ASSERT_EQ(driver.tail_moves.size(), std::size(kTails));
  for (std::size_t i = 0; i < std::size(kTails); ++i) {
    EXPECT_EQ(driver.tail_moves[i].block, LogBlock{kTails[i]});
    EXPECT_EQ(driver.tail_moves[i].freed, i < 4 ? 295U : 163U);
  }
}

// ---- steps of a checkpoint

std::string joined(std::span<const std::string> steps) {
  return fmt::format("{}", fmt::join(steps, "; "));
}

// Transaction 2 (blocks 1, 2 and 3) and two larger ones. Another one of 300 blocks on top leaves
// three blocks too few for the start of the next.
void fill_log(MachineDriver& driver) {
  driver.change(block_range(1, 3), 1);
  driver.commit();
  driver.change(block_range(100, 300), 1);
  driver.commit();
  driver.change(block_range(500, 40), 1);
  driver.commit();
}

TEST(Checkpoint, WritesTheOldestTransactionAndNoMore) {
  MachineDriver driver({.kind = ring_of(1024)});
  fill_log(driver);
  driver.change(block_range(1000, 300), 1);
  driver.commit();
  EXPECT_EQ(driver.journal().space_left(), 341 - 3);
  driver.steps.clear();
  driver.run(driver.journal().make_space());
  EXPECT_EQ(driver.steps_joined(),
            "lock; home 1 2 3; wait buffer 1; wait buffer 2; wait buffer 3; flush; "
            "super 3@6 WFSM; unlock");
  EXPECT_EQ(driver.journal().space_left(), 341 + 2);
  driver.steps.clear();
  driver.run(driver.journal().make_space());  // by another one who had waited for the lock
  EXPECT_EQ(driver.steps_joined(), "lock; unlock");
}

TEST(Checkpoint, WithoutBarriersDoesNotFlush) {
  MachineDriver driver({.kind = ring_of(1024), .options = {.barrier = false}});
  fill_log(driver);
  driver.change(block_range(1000, 300), 1);
  driver.commit();
  driver.steps.clear();
  driver.run(driver.journal().make_space());
  EXPECT_EQ(driver.steps_joined(),
            "lock; home 1 2 3; wait buffer 1; wait buffer 2; wait buffer 3; super 3@6 WSM; unlock");
}

TEST(Checkpoint, WritesBatchesOf64) {
  MachineDriver driver({.kind = ring_of(1024)});
  driver.change(block_range(1, 130), 1);
  driver.commit();
  driver.steps.clear();
  driver.run(driver.journal().shut_down());
  ASSERT_EQ(driver.steps.size(), 1 + 3 + 130 + 4);
  EXPECT_EQ(joined(std::span(driver.steps).first(5)),
            "lock; home 1..64 of 64; home 65..128 of 64; home 129 130; wait buffer 1");
  EXPECT_EQ(joined(std::span(driver.steps).last(5)),
            "wait buffer 130; flush; super 3@133 WFSM; unlock; super 4@0 FWFSM");
}

// A block that a committing transaction has, too: only its commit can free the older image. The
// lock is given back meanwhile, since that commit may want to move the tail.
TEST(Checkpoint, WaitsForACommitThatHoldsABlock) {
  MachineDriver driver({.kind = ring_of(1024)});
  fill_log(driver);
  std::vector<FsBlock> blocks = block_range(1000, 299);
  blocks.push_back(FsBlock{2});
  driver.change(blocks, 1);
  driver.advance_commit_to("log");
  driver.steps.clear();
  driver.run(driver.journal().make_space());
  EXPECT_EQ(driver.steps_joined(),
            "lock; home 1; unlock; wait commit 5; log 605: D47; wait log; commit 653 FWFSM; lock; "
            "home 3; wait buffer 1; wait buffer 3; flush; super 3@6 WFSM; unlock");
  ASSERT_EQ(driver.drops.size(), 1U);
  EXPECT_EQ(driver.drops[0].forced, 1U);
  EXPECT_EQ(driver.drops[0].written, 2U);
  EXPECT_EQ(driver.drops[0].dropped, 1U);
}

// The same with the running transaction, into which a reserved handle has brought the block: its
// commit is forced.
TEST(Checkpoint, ForcesTheCommitOfARunningTransactionThatHoldsABlock) {
  MachineDriver driver({.kind = ring_of(1024)});
  Journal& journal = driver.journal();
  fill_log(driver);
  Handle handle, reserved;
  journal.prepare(reserved, {.credits = 1});
  handle.reserved = &reserved;
  driver.start(handle, {.credits = 300, .reserved = 1});
  for (const FsBlock b : block_range(1000, 299)) driver.write(handle, b, 1);
  Journal::detach_reserved(handle);
  driver.stop(handle);
  driver.commit();

  Handle late;
  journal.prepare(late, {.credits = 1});
  ASSERT_EQ(journal.start(late, driver.now()), Journal::Start::wait_space);
  ASSERT_EQ(journal.start_reserved(reserved, driver.now()), Journal::Start::started);
  driver.write(reserved, FsBlock{1}, 2);
  driver.stop(reserved);
  EXPECT_FALSE(journal.commit_wanted());
  driver.steps.clear();
  driver.run(journal.make_space());
  EXPECT_EQ(driver.steps_joined(),
            "lock; unlock; wait commit 6; wait updates; log 653: D1; wait log; commit 655 FWFSM; "
            "lock; home 2 3; wait buffer 2; wait buffer 3; flush; super 3@6 WFSM; unlock");
  EXPECT_EQ(driver.drops.at(0).forced, 1U);
  EXPECT_EQ(journal.space_left(), 341 - 2 - 3 + 5);  // it took three more blocks, and freed five
}

// Somebody else's write home is waited for, and not written twice.
TEST(Checkpoint, WaitsForAWriteHomeThatIsUnderWay) {
  MachineDriver driver({.kind = ring_of(1024)});
  driver.change(block_range(1, 3), 1);
  driver.commit();
  driver.begin_write_home(driver.buffer(FsBlock{2}));
  driver.steps.clear();
  driver.run(driver.journal().shut_down());
  EXPECT_EQ(driver.steps_joined(),
            "lock; home 1; wait buffer 2; home 3; wait buffer 1; wait buffer 3; flush; "
            "super 3@6 WFSM; unlock; super 4@0 FWFSM");
  EXPECT_EQ(driver.drops.at(0).written, 2U);
}

// Nothing is left of the oldest transactions: the tail moves without a block being written.
TEST(Checkpoint, OnlyCleansUpIfThatMovesTheTail) {
  MachineDriver driver({.kind = ring_of(1024)});
  Journal& journal = driver.journal();
  fill_log(driver);
  driver.change(block_range(1, 3), 2);  // logs all of transaction 2 again
  driver.commit();
  EXPECT_EQ(driver.drops.at(0).dropped, 3U);
  driver.change(block_range(1000, 300), 1);
  driver.commit();
  driver.steps.clear();
  driver.run(journal.make_space());
  EXPECT_EQ(driver.steps.at(0), "lock");
  EXPECT_EQ(driver.steps.at(1), "flush");
  EXPECT_EQ(driver.steps.at(2), "super 3@6 WFSM");
  EXPECT_EQ(driver.checkpoint_results.at(0), 0);
}

// ---- the tail at a commit

struct TailAtCommitRow {
  const char* name;
  std::uint32_t blocks;  // of transaction 3, beside the 303 log blocks of transaction 2
  const char* last_steps;
};
// It takes a superblock write, so it must free as much as a transaction may need: 341 blocks.
constexpr TailAtCommitRow kTailsAtCommit[] = {
    {"341_free_blocks_move_it", 36, "wait log; commit 344 FWFSM; lock; super 4@342 WFSM; unlock"},
    {"340_do_not", 35, "log 341: D1; wait log; commit 343 FWFSM"},
};

class TailAtCommit : public testing::TestWithParam<TailAtCommitRow> {};

TEST_P(TailAtCommit, MovesWithoutAFlushOfItsOwn) {
  MachineDriver driver({.kind = ring_of(1024)});
  driver.change(block_range(100, 300), 1);
  driver.commit();
  driver.change(block_range(500, GetParam().blocks), 1);
  driver.commit();
  driver.write_all_home();  // a sync
  EXPECT_EQ(driver.journal().transactions_listed(), 2U);
  driver.change(block_range(1, 1), 1);
  driver.commit();
  EXPECT_EQ(driver.journal().transactions_listed(), 1U);  // the clean ones went either way
  const std::size_t count = GetParam().blocks == 36 ? 5 : 3;
  EXPECT_EQ(joined(std::span(driver.steps).last(count)), GetParam().last_steps);
  EXPECT_EQ(driver.tail_moves.size(), GetParam().blocks == 36 ? 1U : 0U);
  if (!driver.tail_moves.empty()) {
    EXPECT_EQ(driver.tail_moves[0].from, Tid{2});
    EXPECT_EQ(driver.tail_moves[0].freed, 341U);
    EXPECT_EQ(driver.journal().free_blocks(), 1023U - 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, TailAtCommit, testing::ValuesIn(kTailsAtCommit),
                         [](const auto& row) { return std::string(row.param.name); });

// Before a commit clean buffers leave the lists, up to the first that is not: the transactions
// behind it are not looked at.
TEST(CleanBuffers, LeaveTheListsUpToTheFirstThatIsBusy) {
  MachineDriver driver({.kind = ring_of(1024)});
  driver.change(block_range(1, 2), 1);
  driver.commit();
  driver.change(block_range(3, 1), 1);
  driver.commit();
  for (const std::uint64_t b : {1U, 3U}) {
    driver.begin_write_home(driver.buffer(FsBlock{b}));
    driver.complete(driver.disk().under_way().begin()->first);
  }
  driver.change(block_range(9, 1), 1);
  driver.commit();
  EXPECT_EQ(driver.buffer(FsBlock{1}).cp_transaction, nullptr);
  EXPECT_NE(driver.buffer(FsBlock{2}).cp_transaction, nullptr);
  EXPECT_NE(driver.buffer(FsBlock{3}).cp_transaction, nullptr);
  EXPECT_EQ(driver.journal().transactions_listed(), 3U);
  driver.write_all_home();
  driver.change(block_range(9, 1), 1);
  driver.commit();
  EXPECT_EQ(driver.journal().transactions_listed(), 1U);
}

// ---- unmount

enum class Use : std::uint8_t { nothing, handle_only, committed, committed_home, running };
struct UnmountRow {
  const char* name;  // "Unmount after ..."
  Use use;
  const char* want;
};
constexpr UnmountRow kUnmounts[] = {
    {"nothing_writes_nothing", Use::nothing, ""},
    {"a_handle_that_changed_nothing_commits_it", Use::handle_only,
     "lock; super 2@1 WSM; unlock; wait updates; wait log; commit 1 FWFSM; super 4@0 FWFSM"},
    {"a_commit_writes_it_home", Use::committed,
     "lock; home 1 2 3; wait buffer 1; wait buffer 2; wait buffer 3; flush; super 3@6 WFSM; "
     "unlock; super 4@0 FWFSM"},
    {"a_commit_and_a_sync_only_moves_the_tail", Use::committed_home,
     "lock; flush; super 3@6 WFSM; unlock; super 4@0 FWFSM"},
    {"a_change_commits_it_first", Use::running,
     "lock; super 2@1 WSM; unlock; wait updates; log 1: D3; wait log; commit 5 FWFSM; lock; "
     "home 1 2 3; wait buffer 1; wait buffer 2; wait buffer 3; flush; super 3@6 WFSM; unlock; "
     "super 4@0 FWFSM"},
};

class Unmount : public testing::TestWithParam<UnmountRow> {};

TEST_P(Unmount, LeavesAnEmptyLogThatTheNextMountGoesOnWith) {
  const Use use = GetParam().use;
  MachineDriver driver({.kind = ring_of(1024)});
  if (use == Use::handle_only) driver.change({}, 0);
  if (use >= Use::committed) driver.change(block_range(1, 3), 1);
  if (use == Use::committed || use == Use::committed_home) driver.commit();
  if (use == Use::committed_home) driver.write_all_home();
  driver.steps.clear();
  const LogSuperblock before = driver.journal().superblock();
  driver.run(driver.journal().shut_down());
  EXPECT_EQ(driver.steps_joined(), GetParam().want);

  const TestDisk::Contents disk = driver.disk().now();
  const auto super = LogSuperblock::parse(disk.at(TestDisk::log(LogBlock{0})).bytes());
  ASSERT_TRUE(super);
  EXPECT_TRUE(super->checksum_ok());
  EXPECT_TRUE(super->empty());
  if (use == Use::nothing) {
    EXPECT_EQ(*super, before);
  } else {
    const LogBlock head{use == Use::handle_only ? 2U : 6U};
    EXPECT_EQ(super->sequence(), Tid{4});  // the next tid would have been 3
    EXPECT_EQ(super->head(), head);
    EXPECT_FALSE(super->features().has(feature::kFastCommit));
  }
  if (use >= Use::committed) {
    EXPECT_EQ(value_of(disk.at(TestDisk::home(FsBlock{2}))), 1U);
  }
  // The next mount: the tid after that of the superblock, from the head on.
  MachineDriver next({.kind = ring_of(1024), .sequence = super->sequence(), .head = super->head()});
  next.change(block_range(1, 1), 1);
  next.commit();
  const auto at = super->head() == LogBlock{0} ? 1U : super->head().value();
  EXPECT_EQ(next.steps.at(1), fmt::format("super {}@{} WSM", super->sequence().value() + 1, at));
}

INSTANTIATE_TEST_SUITE_P(Rows, Unmount, testing::ValuesIn(kUnmounts),
                         [](const auto& row) { return std::string(row.param.name); });

// The area's blocks are no part of the ring, and the feature goes with the last superblock: the
// area holds nothing that a reader must know.
TEST(UnmountWithAFastCommitArea, TakesTheFeatureAway) {
  MachineDriver driver({.kind = {.block_size = 4096, .fast_commit_blocks = 64, .block_count = 1088},
                        .head = LogBlock{1023}});
  EXPECT_EQ(driver.journal().max_transaction_blocks(), 341U);
  driver.change(block_range(1, 1), 1);
  driver.commit();
  EXPECT_EQ(driver.steps.back(), "commit 2 FWFSM");  // 1023, 1, 2
  EXPECT_TRUE(driver.journal().superblock().features().has(feature::kFastCommit));
  driver.run(driver.journal().shut_down());
  EXPECT_FALSE(driver.journal().superblock().features().has(feature::kFastCommit));
}

}  // namespace
}  // namespace jbdlab::jbd2
