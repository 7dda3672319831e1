#include "sim/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/engine/random.h"
#include "tests/support/trace_recount.h"

namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;
using enum SectorClass;

// A file system of 4 KiB blocks with a backup of super and descriptors at 32768.
SectorClassifier classifier_4k() {
  return SectorClassifier(4096, {{FsBlock{0}, FsBlock{1}, super},
                                 {FsBlock{1}, FsBlock{32}, gdt},
                                 {FsBlock{33}, FsBlock{34}, block_bitmap},
                                 {FsBlock{34}, FsBlock{35}, block_bitmap},
                                 {FsBlock{35}, FsBlock{36}, inode_bitmap},
                                 {FsBlock{37}, FsBlock{4129}, inode_table},
                                 {FsBlock{32768}, FsBlock{32769}, super},
                                 {FsBlock{32769}, FsBlock{32800}, gdt},
                                 {FsBlock{32801}, FsBlock{32802}, journal_super},
                                 {FsBlock{32802}, FsBlock{36833}, journal_log},
                                 {FsBlock{36833}, FsBlock{36897}, journal_fc}});
}

struct ClassRow {
  std::string_view name;
  std::uint64_t sector;
  bool meta;
  SectorClass want;
};

class Classify : public ::testing::TestWithParam<ClassRow> {};

TEST_P(Classify, Row) {
  const ClassRow& row = GetParam();
  EXPECT_EQ(classifier_4k().classify(Sector{row.sector}, row.meta), row.want);
}

constexpr ClassRow kClassRows[] = {
    {"TheFirstSectorIsSuper", 0, true, super},
    {"TheLastSectorOfTheSuperBlockIsSuper", 7, false, super},
    {"DescriptorsFollow", 8, true, gdt},
    {"ReservedDescriptorsAreDescriptors", 31 * 8 + 7, true, gdt},
    {"AMetadataBlockInNoTableIsOther", 32 * 8, true, fs_meta_other},
    {"WithoutMetaItIsData", 32 * 8, false, data},
    {"TheFirstBlockBitmap", 33 * 8, true, block_bitmap},
    {"TheSecondBlockBitmap", 34 * 8 + 3, true, block_bitmap},
    {"TheInodeBitmap", 35 * 8, true, inode_bitmap},
    {"TheEndOfTheInodeTable", 4128 * 8 + 7, true, inode_table},
    {"BehindTheInodeTable", 4129 * 8, false, data},
    {"ABackupOfTheSuperIsSuper", 32768 * 8, true, super},
    {"TheJournalsSuper", 32801 * 8, true, journal_super},
    {"TheLogIsTheLogWhateverTheFlag", 32802 * 8, false, journal_log},
    {"TheFastCommitArea", 36896 * 8 + 7, true, journal_fc},
    {"BehindEverything", 36897 * 8, true, fs_meta_other},
};
INSTANTIATE_TEST_SUITE_P(Rows, Classify, ::testing::ValuesIn(kClassRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(SectorClassifier, CountsARequestThatCrossesBorders) {
  EnumArray<SectorClass> sums;
  classifier_4k().count(Sector{4}, 36 * 8, true, sums);
  EnumArray<SectorClass> want;
  want[super] = 4;
  want[gdt] = 31 * 8;
  want[fs_meta_other] = 8 + 4;  // blocks 32 and half of 36
  want[block_bitmap] = 16;
  want[inode_bitmap] = 8;
  EXPECT_EQ(sums, want);
}

TEST(SectorClassifier, WithoutRangesEverythingIsElsewhere) {
  EnumArray<SectorClass> sums;
  const SectorClassifier classifier;
  classifier.count(Sector{0}, 8, true, sums);
  classifier.count(Sector{0}, 16, false, sums);
  EXPECT_EQ(sums[fs_meta_other], 8U);
  EXPECT_EQ(sums[data], 16U);
}

TEST(SectorClassifier, AgreesWithATableOfSectorsWhateverTheOverlaps) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    constexpr std::uint64_t kBlocks = 64;
    std::vector<SectorClassifier::Range> ranges;
    std::vector<SectorClass> table(kBlocks * 2, data);
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      const std::uint64_t first = random.below(kBlocks);
      const std::uint64_t end = first + random.below(kBlocks - first + 1);
      const auto c = static_cast<SectorClass>(random.below(8));
      ranges.push_back({FsBlock{first}, FsBlock{end}, c});
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(first * 2),
                table.begin() + static_cast<std::ptrdiff_t>(end * 2), c);
    }
    const SectorClassifier classifier(1024, ranges);
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t sector = random.below(table.size());
      ASSERT_EQ(classifier.classify(Sector{sector}, false), table[sector]) << sector;
      const std::uint64_t count = random.below(table.size() - sector + 1);
      EnumArray<SectorClass> sums, want;
      classifier.count(Sector{sector}, static_cast<std::uint32_t>(count), false, sums);
      for (std::uint64_t s = sector; s < sector + count; ++s) ++want[table[s]];
      ASSERT_EQ(sums, want) << sector << " + " << count;
    }
  }
}

// One of each event, and the line that it prints.
struct EventRow {
  std::string_view line;
  void (*happen)(Trace&);
};

Request request_of(IoOp op, BioFlags flags, std::uint64_t sector, std::uint32_t sectors) {
  Request request;
  request.op = op;
  request.flags = flags;
  request.sector = Sector{sector};
  request.sectors = sectors;
  return request;
}

const EventRow kEvents[] = {
    {"phase setup", [](Trace& t) { t.phase("setup"); }},
    {"op create thread 3", [](Trace& t) { t.op("create", 3); }},
    {"ext4_sync_file_enter ino 12 parent 2 datasync 0",
     [](Trace& t) { t.sync_file_enter(Ino{12}, Ino{2}, false); }},
    {"ext4_sync_file_enter ino 12 parent 2 datasync 1",
     [](Trace& t) { t.sync_file_enter(Ino{12}, Ino{2}, true); }},
    {"ext4_sync_fs wait 1", [](Trace& t) { t.sync_fs(true); }},
    {"ext4_journal_start_sb blocks 46, rsv_blocks 0, revoke_creds 8, type 4",
     [](Trace& t) { t.journal_start({.type = HandleType::dir, .blocks = 46}); }},
    {"ext4_journal_start_inode blocks 20, rsv_blocks 18, revoke_creds 8, type 2, ino 12",
     [](Trace& t) {
       t.journal_start(
           {.type = HandleType::write_page, .blocks = 20, .rsv_blocks = 18, .ino = Ino{12}});
     }},
    {"ext4_journal_start_reserved blocks, 18", [](Trace& t) { t.journal_start_reserved(18); }},
    {"ext4_fc_commit_start tid 3", [](Trace& t) { t.fc_commit_start(Tid{3}); }},
    {"ext4_fc_commit_stop nblks 2, reason 0, fc = 5, ineligible = 1, agg_nblks 9, tid 3",
     [](Trace& t) {
       t.fc_commit_stop({.status = FcStatus::ok,
                         .blocks = 2,
                         .commits = 5,
                         .ineligible = 1,
                         .blocks_sum = 9,
                         .tid = Tid{3}});
     }},
    {"ext4_fc_commit_stop nblks 0, reason 3, fc = 0, ineligible = 1, agg_nblks 0, tid 2",
     [](Trace& t) {
       t.fc_commit_stop({.status = FcStatus::failed, .ineligible = 1, .tid = Tid{2}});
     }},
    {"ext4_fc_cleanup j_fc_off 0, full 1, tid 2", [](Trace& t) { t.fc_cleanup(0, true, Tid{2}); }},
    {"ext4_fc_cleanup j_fc_off 1, full 0, tid 0", [](Trace& t) { t.fc_cleanup(1, false, Tid{0}); }},
    {"ext4_fc_track_create t_tid 2, ino 12, i_sync_tid 2, error 0",
     [](Trace& t) { t.fc_track(FcTrack::create, Tid{2}, Ino{12}, Tid{2}, 0); }},
    {"ext4_fc_track_inode t_tid 2, inode 12, i_sync_tid 2, error -17",
     [](Trace& t) { t.fc_track(FcTrack::inode, Tid{2}, Ino{12}, Tid{2}, -17); }},
    {"ext4_fc_track_unlink t_tid 2, ino 12, i_sync_tid 2, error -22",
     [](Trace& t) { t.fc_track(FcTrack::unlink, Tid{2}, Ino{12}, Tid{2}, -22); }},
    {"ext4_fc_track_range t_tid 2, inode 12, i_sync_tid 2, error 0, start 0, end 4",
     [](Trace& t) { t.fc_track_range(Tid{2}, Ino{12}, Tid{2}, 0, 4, 0); }},
    {"jbd2_handle_stats tid 2 type 4 interval 1 sync 0 requested_blocks 54 dirtied_blocks 5",
     [](Trace& t) {
       t.handle_stats({.tid = Tid{2},
                       .type = HandleType::dir,
                       .interval = 1900us,
                       .requested_blocks = 54,
                       .dirtied_blocks = 5});
     }},
    {"jbd2_start_commit transaction 2 sync 0", [](Trace& t) { t.start_commit(Tid{2}, false); }},
    {"jbd2_run_stats tid 2 wait 0 request_delay 0 running 7 locked 0 flushing 0 logging 4 "
     "handle_count 5 blocks 6 blocks_logged 8",
     [](Trace& t) {
       t.run_stats({.record = {.tid = Tid{2}, .handles = 5, .blocks = 6, .blocks_logged = 8},
                    .running = 7ms,
                    .logging = 4ms});
     }},
    {"jbd2_end_commit transaction 2 sync 1 head 2",
     [](Trace& t) { t.end_commit(Tid{2}, true, Tid{2}); }},
    {"jbd2_checkpoint result 0", [](Trace& t) { t.checkpoint(0); }},
    {"jbd2_checkpoint_stats tid 2 chp_time 0 forced_to_close 1 written 4 dropped 3",
     [](Trace& t) {
       t.checkpoint_stats({.tid = Tid{2}, .forced_to_close = 1, .written = 4, .dropped = 3});
     }},
    {"jbd2_update_log_tail from 2 to 6 offset 24 freed 23",
     [](Trace& t) { t.update_log_tail(Tid{2}, Tid{6}, LogBlock{24}, 23); }},
    {"jbd2_write_superblock write_flags 29800", [](Trace& t) { t.write_superblock(0x29800); }},
    {"block_bio_queue RAM 272 + 8",
     [](Trace& t) {
       t.bio_queue({.op = IoOp::read,
                    .flags = {.meta = true, .rahead = true},
                    .sector = Sector{272},
                    .sectors = 8});
     }},
    {"block_bio_queue FWFSM 262472 + 8",
     [](Trace& t) {
       t.bio_queue({.op = IoOp::write,
                    .flags = {.preflush = true, .fua = true, .sync = true, .meta = true},
                    .sector = Sector{262472},
                    .sectors = 8});
     }},
    {"block_bio_queue WS 33112 + 16",
     [](Trace& t) {
       t.bio_queue(
           {.op = IoOp::write, .flags = {.sync = true}, .sector = Sector{33112}, .sectors = 16});
     }},
    {"block_bio_queue FWS 0 + 0", [](Trace& t) { t.bio_queue(Bio::flush({})); }},
    {"block_bio_queue D 800 + 80",
     [](Trace& t) { t.bio_queue({.op = IoOp::discard, .sector = Sector{800}, .sectors = 80}); }},
    {"block_rq_issue FF 0 () 0 + 0",
     [](Trace& t) { t.rq_issue(request_of(IoOp::flush, {.preflush = true}, 0, 0)); }},
    {"block_rq_complete FF () 0 + 0",
     [](Trace& t) { t.rq_complete(request_of(IoOp::flush, {.preflush = true}, 0, 0)); }},
    {"block_rq_issue WSM 28672 () 262416 + 56",
     [](Trace& t) {
       t.rq_issue(request_of(IoOp::write, {.sync = true, .meta = true}, 262416, 56));
     }},
    {"block_rq_complete WSM () 262416 + 56",
     [](Trace& t) {
       t.rq_complete(request_of(IoOp::write, {.sync = true, .meta = true}, 262416, 56));
     }},
    {"block_rq_issue R 4096 () 8 + 8",
     [](Trace& t) { t.rq_issue(request_of(IoOp::read, {}, 8, 8)); }},
};

TEST(Trace, PrintsEachEventAsTheRecordingsDo) {
  Engine engine;
  Trace trace(engine);
  std::vector<std::string> lines;
  trace.set_sink([&](std::string_view line) { lines.emplace_back(line); });
  for (const EventRow& event : kEvents) {
    lines.clear();
    event.happen(trace);
    EXPECT_THAT(lines, ::testing::ElementsAre("0 " + std::string(event.line)));
  }
}

TEST(Trace, ItsLinesCountToItsCounters) {
  Engine engine;
  Trace trace(engine);
  trace.set_classifier(classifier_4k());
  test::TraceRecount recount(classifier_4k());
  trace.set_sink([&](std::string_view line) { recount.line(line); });
  for (const EventRow& event : kEvents) {
    event.happen(trace);
    EXPECT_EQ(recount.counters, trace.counters) << event.line;
  }
  EXPECT_THAT(recount.unknown, ::testing::IsEmpty());
  EXPECT_THAT(recount.phases, ::testing::ElementsAre("setup"));
  ASSERT_EQ(recount.ops.size(), 1U);
  EXPECT_EQ(recount.ops[0].verb, "create");
  EXPECT_EQ(recount.ops[0].thread, 3U);
  // No counter is left out above, or two that are exchanged could not be told apart.
  for (const NamedTotal& total : kTotals) EXPECT_GT(trace.counters.*total.member, 0U) << total.name;
}

TEST(Trace, CountsTheSameWhetherSomebodyListensOrNot) {
  Engine engine;
  Trace silent(engine), heard(engine);
  heard.set_sink([](std::string_view) {});
  for (const EventRow& event : kEvents) {
    event.happen(silent);
    event.happen(heard);
  }
  EXPECT_EQ(silent.counters, heard.counters);
}

Task<> announce_later(Engine& engine, Trace& trace) {
  co_await engine.delay(1234us);
  trace.phase("run");
}

TEST(Trace, TellsTheTimeInNanosecondsSinceTheStart) {
  Engine engine;
  Trace trace(engine);
  std::string seen;
  trace.set_sink([&](std::string_view line) { seen = line; });
  engine.spawn(announce_later(engine, trace));
  const bool never = false;
  engine.run_until(never);
  EXPECT_EQ(seen, "1234000 phase run");
}

}  // namespace
}  // namespace jbdlab::sim
