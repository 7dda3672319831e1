#include "sim/device/block_layer.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kChunk = 4096;
constexpr std::uint64_t kSlowSector = 80'000;  // writes from here on take 6 s

// Every request takes 10 us, however many there are.
class FixedCost final : public CostModel {
 public:
  Time completion(const Request& request, Time now) override {
    return now + (request.sector.value() >= kSlowSector ? Duration(6s) : Duration(10us));
  }
};

struct Caps {
  bool volatile_cache;
  bool fua;
};
constexpr Caps kVolatile{true, false};
constexpr Caps kVolatileFua{true, true};
constexpr Caps kWriteThrough{false, false};

// A device that notes what it gets and what completes, each with its time in us:
// "0 WSM 8+16, 10 done0". Bios are numbered in the order of submission.
class Rig {
 public:
  explicit Rig(Caps caps)
      : trace(engine),
        device(engine, info(caps), std::make_unique<FixedCost>(), BlockStore(kChunk, 100'000 * 512),
               {}),
        layer(engine, trace, device) {
    trace.set_sink([this](std::string_view line) { note_event(line); });
  }

  // "FWFSM 8+16": letters as in a trace, first sector, sectors.
  Bio bio(const std::string& letters, const std::string& range) {
    std::string_view rest = letters;
    Bio bio;
    if (rest.starts_with("F")) {
      bio.flags.preflush = true;
      rest.remove_prefix(1);
    }
    bio.op = rest.starts_with("R")   ? IoOp::read
             : rest.starts_with("D") ? IoOp::discard
                                     : IoOp::write;
    rest.remove_prefix(1);
    for (const char c : rest) {
      if (c == 'F') bio.flags.fua = true;
      if (c == 'S') bio.flags.sync = true;
      if (c == 'M') bio.flags.meta = true;
      if (c == 'A') bio.flags.rahead = true;
    }
    bio.sector = Sector{std::stoull(range)};
    bio.sectors = static_cast<std::uint32_t>(std::stoul(range.substr(range.find('+') + 1)));
    if (bio.op == IoOp::write) {
      for (std::uint32_t i = 0; i < bio.sectors / 8; ++i) {
        bio.blocks.push_back(BlockRef::pattern(kChunk, 1, i, 0, kChunk));
      }
    }
    waiting_.push_back({this, waiting_.size()});
    bio.done = {[](void* context) {
                  const auto& self = *static_cast<Numbered*>(context);
                  self.rig->note("done" + std::to_string(self.number));
                },
                &waiting_.back()};
    return bio;
  }

  std::string happened() {
    engine.run_until(never_);
    return happened_;
  }

  Engine engine;
  Trace trace;
  Device device;
  BlockLayer layer;

 private:
  struct Numbered {
    Rig* rig;
    std::size_t number;
  };
  static DeviceInfo info(Caps caps) {
    DeviceInfo info;
    info.name = "test";
    info.volatile_cache = caps.volatile_cache;
    info.fua = caps.fua;
    return info;
  }
  void note(const std::string& what) {
    if (!happened_.empty()) happened_ += ", ";
    happened_ += std::to_string(engine.now().time_since_epoch() / 1us) + " " + what;
  }
  void note_event(std::string_view line) {
    std::istringstream words{std::string(line)};
    std::string time, event, letters, bytes, parentheses, sector, plus, sectors;
    words >> time >> event >> letters >> bytes >> parentheses >> sector >> plus >> sectors;
    if (event != "block_rq_issue") return;
    note(letters == "FF" ? letters : letters + " " + sector + "+" + sectors);
  }

  std::string happened_;
  std::deque<Numbered> waiting_;
  const bool never_ = false;
};

struct FlushRow {
  std::string_view name;
  Caps caps;
  std::string_view bios;  // "TIME LETTERS RANGE; …", in us
  std::string_view want;
};

class FlushMachinery : public ::testing::TestWithParam<FlushRow> {};

Task<> submit_later(Rig& rig, Duration when, Bio bio) {
  co_await rig.engine.delay(when);
  rig.layer.submit(std::move(bio));
}

TEST_P(FlushMachinery, Row) {
  const FlushRow& row = GetParam();
  Rig rig(row.caps);
  std::istringstream bios{std::string(row.bios)};
  std::int64_t time = 0;
  std::string letters, range;
  while (bios >> time >> letters >> range) {
    rig.engine.spawn(submit_later(rig, Duration(time * 1us), rig.bio(letters, range)));
  }
  EXPECT_EQ(rig.happened(), row.want);
  EXPECT_EQ(rig.layer.in_flight(), 0U);
  EXPECT_EQ(rig.trace.counters.rq_flush_issued, rig.trace.counters.rq_flush_completed);
}

constexpr FlushRow kFlushRows[] = {
    {"CommitBlockIsFlushWriteFlush", kVolatile, "0 FWFSM 8+8", "0 FF, 10 WSM 8+8, 20 FF, 30 done0"},
    {"CommitBlockIsFlushThenFuaWriteWhereTheDeviceCan", kVolatileFua, "0 FWFSM 8+8",
     "0 FF, 10 WFSM 8+8, 20 done0"},
    {"CommitBlockIsAPlainWriteOnAWriteThroughDevice", kWriteThrough, "0 FWFSM 8+8",
     "0 WSM 8+8, 10 done0"},
    {"FuaIsWriteThenFlush", kVolatile, "0 WFS 0+8", "0 WS 0+8, 10 FF, 20 done0"},
    {"FuaIsItselfWhereTheDeviceCan", kVolatileFua, "0 WFS 0+8", "0 WFS 0+8, 10 done0"},
    {"FuaIsAPlainWriteOnAWriteThroughDevice", kWriteThrough, "0 WFS 0+8", "0 WS 0+8, 10 done0"},
    {"PreflushIsFlushThenWrite", kVolatile, "0 FWS 0+8", "0 FF, 10 WS 0+8, 20 done0"},
    {"FlushOnlyIsAFlush", kVolatile, "0 FWS 0+0", "0 FF, 10 done0"},
    {"FlushOnlyIsNothingOnAWriteThroughDevice", kWriteThrough, "3 FWS 0+0", "3 done0"},
    {"PlainWritesDoNotFlush", kVolatile, "0 WM 0+8; 1 R 8+8",
     "0 WM 0+8, 1 R 8+8, 10 done0, 11 done1"},
    {"FlushesAskedForDuringAFlushShareTheNext", kVolatile, "0 FWS 0+0; 3 FWS 0+0; 4 FWS 0+0",
     "0 FF, 10 done0, 10 FF, 20 done1, 20 done2"},
    {"AFlushWaitsForTheDataOfASequenceAndIsSharedWithItsPostFlush", kVolatile,
     "0 FWFSM 8+8; 5 FWS 0+0", "0 FF, 10 WSM 8+8, 20 FF, 30 done1, 30 done0"},
    {"AFlushWaitsForTheDataOfAFuaWrite", kVolatile, "0 WFS 0+8; 5 FWS 0+0",
     "0 WS 0+8, 10 FF, 20 done1, 20 done0"},
    {"AFlushDoesNotWaitForOtherWrites", kVolatile, "0 W 0+8; 5 FWS 0+0",
     "0 W 0+8, 5 FF, 10 done0, 15 done1"},
    {"ThePostFlushOfOneIsThePreFlushOfTheNext", kVolatile, "0 FWFSM 8+8; 0 FWFSM 16+8",
     "0 FF, 10 WSM 8+8, 20 FF, 30 done0, 30 WSM 16+8, 40 FF, 50 done1"},
    {"TwoCommitBlocksThatWaitForOneFlushGoTogether", kVolatile,
     "0 FWS 0+0; 1 FWFSM 8+8; 2 FWFSM 16+8",
     "0 FF, 10 done0, 10 FF, 20 WSM 8+8, 20 WSM 16+8, 30 FF, 40 done1, 40 done2"},
    {"AFlushThatHasWaitedFiveSecondsWaitsNoLonger", kVolatile,
     "0 WFS 80000+8; 5 FWS 0+0; 4000000 FWS 0+0; 5000006 FWS 0+0",
     "0 WS 80000+8, 5000006 FF, 5000016 done1, 5000016 done2, 5000016 done3, "
     "6000000 FF, 6000010 done0"},
};
INSTANTIATE_TEST_SUITE_P(Rows, FlushMachinery, ::testing::ValuesIn(kFlushRows),
                         [](const auto& row) { return std::string(row.param.name); });

struct PlugRow {
  std::string_view name;
  std::string_view bios;  // "LETTERS RANGE; …", all in one plug, at once; "xN" repeats, going on
  std::string_view want;  // requests in the order in which they are issued
};

class Plugging : public ::testing::TestWithParam<PlugRow> {};

TEST_P(Plugging, Row) {
  const PlugRow& row = GetParam();
  Rig rig(kVolatile);
  Plug plug(rig.layer);
  std::istringstream bios{std::string(row.bios)};
  std::string letters, range, end;
  std::size_t submitted = 0;
  while (bios >> letters >> range >> end) {
    const int times = end.starts_with("x") ? std::stoi(end.substr(1)) : 1;
    const std::uint64_t step = std::stoull(range.substr(range.find('+') + 1));
    for (int i = 0; i < times; ++i, ++submitted) {
      const std::uint64_t sector = std::stoull(range) + static_cast<std::uint64_t>(i) * step;
      plug.submit(rig.bio(letters, std::to_string(sector) + "+" + std::to_string(step)));
    }
  }
  plug.finish();
  std::string all = rig.happened();
  // Only what is issued at time 0; every bio must end as well.
  std::size_t ends = 0;
  for (std::size_t at = all.find("done"); at != std::string::npos; at = all.find("done", at + 1))
    ++ends;
  EXPECT_EQ(ends, submitted);
  std::string issued;
  std::istringstream events(all);
  for (std::string event; std::getline(events >> std::ws, event, ',');) {
    if (event.starts_with("0 ")) issued += (issued.empty() ? "" : ", ") + event.substr(2);
  }
  EXPECT_EQ(issued, row.want);
}

constexpr PlugRow kPlugRows[] = {
    {"JoinsABioBehindTheLast", "WSM 8+8 ; WSM 16+8 ; WSM 24+8 ;", "WSM 8+24"},
    {"JoinsABioBeforeTheLast", "RAM 272+8 ; RAM 264+8 ;", "RAM 264+16"},
    {"LeavesAGap", "WM 0+8 ; WM 8+8 ; WM 264+8 ;", "WM 0+16, WM 264+8"},
    {"LooksAtTheLastRequestOnly", "WM 0+8 ; WM 64+8 ; WM 8+8 ;", "WM 0+8, WM 64+8, WM 8+8"},
    {"DoesNotJoinReadAndWrite", "R 0+8 ; W 8+8 ;", "R 0+8, W 8+8"},
    {"JoinsWhateverTheOtherFlags", "WS 0+8 ; WM 8+8 ;", "WS 0+16"},
    {"IssuesAFlushSequenceAtOnce", "W 0+8 ; FWFSM 8+8 ; W 16+8 ;", "W 0+8, W 16+8, FF"},
    {"DoesNotJoinFua", "W 0+8 ; WFS 8+8 ; W 16+8 ;", "W 0+8, WS 8+8, W 16+8"},
    {"JoinsUpTo128Segments", "WM 8+8 x130", "WM 8+1024, WM 1032+16"},
    {"SplitsABioAt128Blocks", "W 8+2056 ;", "W 8+1024, W 1032+1024, W 2056+8"},
    {"IssuesWhatItHoldsBehindARequestOf128K", "W 0+256 ; W 512+8 ; W 1024+8 ;",
     "W 0+256, W 512+8, W 1024+8"},
    {"JoinsDiscards", "D 8+8 ; D 16+4096 ;", "D 8+4104"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Plugging, ::testing::ValuesIn(kPlugRows),
                         [](const auto& row) { return std::string(row.param.name); });

// Limits of a plug show in when it issues, not in what.
TEST(Plug, HoldsThirtyTwoRequestsAtMost) {
  Rig rig(kVolatile);
  Plug plug(rig.layer);
  for (std::uint64_t i = 0; i < 32; ++i) plug.submit(rig.bio("W", std::to_string(i * 16) + "+8"));
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 0U);
  plug.submit(rig.bio("W", "4096+8"));
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 32U);
  plug.finish();
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 33U);
}

TEST(Plug, IssuesALargeRequestWhenAnotherComes) {
  Rig rig(kVolatile);
  Plug plug(rig.layer);
  plug.submit(rig.bio("W", "0+248"));
  plug.submit(rig.bio("W", "1024+8"));
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 0U);  // 124 KiB is not large
  plug.submit(rig.bio("W", "1032+248"));
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 0U);  // joined: 128 KiB, and nothing behind it
  plug.submit(rig.bio("W", "4096+8"));
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 2U);
}

TEST(Plug, ItsEndIssuesWhatItHolds) {
  Rig rig(kVolatile);
  {
    Plug plug(rig.layer);
    plug.submit(rig.bio("W", "0+8"));
    EXPECT_EQ(rig.device.completed_requests(), 0U);
    EXPECT_EQ(rig.trace.counters.rq_write_issued, 0U);
  }
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 1U);
}

TEST(BlockLayer, SplitsByTheSizeOfARequestWhereSegmentsAreLarge) {
  Rig rig(kVolatile);
  Bio bio = rig.bio("W", "0+4096");  // 512 blocks in folios of 64 KiB
  bio.segments = 32;
  rig.layer.submit(std::move(bio));
  EXPECT_EQ(rig.happened(), "0 W 0+2560, 0 W 2560+1536, 10 done0");
  EXPECT_EQ(rig.trace.counters.bio_writes, 1U);
  EXPECT_EQ(rig.trace.counters.rq_write_issued, 2U);
}

// The recorded case: folios of 8 KiB let 1 MiB into a request (stream_4t).
TEST(BlockLayer, SplitsByTheNumberOfSegments) {
  Rig rig(kVolatile);
  Bio bio = rig.bio("W", "0+4096");
  bio.segments = 256;
  rig.layer.submit(std::move(bio));
  EXPECT_EQ(rig.happened(), "0 W 0+2048, 0 W 2048+2048, 10 done0");
}

TEST(BlockLayer, CountsNothingOfAFlushOnAWriteThroughDevice) {
  Rig rig(kWriteThrough);
  rig.layer.submit(rig.bio("FWS", "0+0"));
  rig.layer.submit(rig.bio("FWFSM", "8+8"));
  rig.happened();
  SimCounters want;
  want.bio_writes = 1;
  want.bio_write_sectors = 8;
  want.rq_write_issued = 1;
  want.sectors[SectorClass::fs_meta_other] = 8;
  EXPECT_EQ(rig.trace.counters, want);
}

Task<> read_what_was_written(Rig& rig, bool& done) {
  const BlockRef written = BlockRef::pattern(kChunk, 99, 0, 0, kChunk);
  co_await rig.layer.submit_and_wait(Bio::write_block(FsBlock{5}, written, {}, {}));
  EXPECT_EQ(rig.engine.now(), Time{} + 10us);
  BlockRef read[2];
  Bio bio{.op = IoOp::read, .sector = Sector{40}, .sectors = 16, .into = read};
  co_await rig.layer.submit_and_wait(std::move(bio));
  EXPECT_TRUE(std::ranges::equal(read[0].bytes(), written.bytes()));
  EXPECT_TRUE(read[1].is_zeros());
  BlockRef whole;  // a part of a chunk reads as the whole
  Bio part{.op = IoOp::read, .sector = Sector{42}, .sectors = 2, .into = &whole};
  co_await rig.layer.submit_and_wait(std::move(part));
  EXPECT_TRUE(std::ranges::equal(whole.bytes(), written.bytes()));
  co_await rig.layer.flush();
  EXPECT_EQ(rig.engine.now(), Time{} + 40us);
  done = true;
}

TEST(BlockLayer, AProcessReadsWhatItWrote) {
  Rig rig(kVolatile);
  bool done = false;
  rig.engine.spawn(read_what_was_written(rig, done));
  EXPECT_TRUE(rig.engine.run_until(done));
}

TEST(BlockLayer, ALargeReadIsSplitAndFillsAllBlocks) {
  Rig rig(kVolatile);
  rig.layer.submit(rig.bio("W", "0+2400"));
  rig.happened();
  std::vector<BlockRef> read(300);
  Bio bio = rig.bio("R", "0+2400");
  bio.into = read.data();
  rig.layer.submit(std::move(bio));
  rig.happened();
  for (std::uint64_t i = 0; i < read.size(); ++i) {
    ASSERT_TRUE(std::ranges::equal(read[i].bytes(), rig.device.contents().read(i).bytes())) << i;
    ASSERT_FALSE(read[i].is_zeros());
  }
}

TEST(BlockLayer, AStepOfAFlushSequenceTakesItsHandOver) {
  Engine engine;
  Trace trace(engine);
  auto device = make_device("ram", engine, BlockStore(kChunk, 1 << 20), {});
  ASSERT_TRUE(device.has_value());
  BlockLayer layer(engine, trace, **device);
  bool done = false;
  layer.submit(
      Bio::write_block(FsBlock{1}, BlockRef::zeros(kChunk), {.preflush = true, .fua = true},
                       {[](void* context) { *static_cast<bool*>(context) = true; }, &done}));
  EXPECT_TRUE(engine.run_until(done));
  // Three hand-overs of 7 us, two flushes of 7, a write of 6 + 4096 / 2000.
  EXPECT_EQ(engine.now(), Time{} + 3 * 7us + 2 * 7us + 6us + 2048ns);
}

}  // namespace
}  // namespace jbdlab::sim
