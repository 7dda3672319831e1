#include "workloads/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::workloads {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

Report small_report() {
  Report r;
  r.provenance.version = "1.2.3";
  r.provenance.build_type = "Release";
  r.provenance.compiler = "GNU 12.2.0";
  r.provenance.workload = "a.ops";
  r.provenance.workload_digest = text_digest("fsync a\n");
  r.provenance.mkfs_options = "-b 4096";
  r.provenance.mount_options = "commit=60";
  r.provenance.image_size_bytes = 256 << 20;
  r.provenance.device = "ram";
  r.provenance.device_parameters = {{"flush_ns", std::uint64_t{0}}, {"fua", false}};
  r.provenance.kernel = "6.18";
  r.provenance.cpus = 2;
  r.provenance.seed = 42;
  r.config = {.mount_effective = "rw,relatime,commit=60",
              .features = {"has_journal", "extent"},
              .block_size = 4096,
              .journal_blocks = 4160,
              .journal_fc_blocks = 64,
              .threads = 1};
  r.phase("mount").elapsed = 1ms;
  PhaseReport& run = r.phase("run");
  run.elapsed = 2s;
  run.counters.ops[OpKind::fsync] = 3;
  run.counters.ops[OpKind::append] = 4;
  run.counters.bytes_written = 8192;
  run.counters.bytes_read = 1;
  run.counters.sim.fsync_calls = 2;
  run.counters.sim.fdatasync_calls = 1;
  run.counters.sim.bio_write_sectors = 24;
  run.counters.sim.sectors[sim::SectorClass::data] = 16;
  run.counters.sim.sectors[sim::SectorClass::super] = 2;
  run.counters.sim.sectors[sim::SectorClass::gdt] = 6;
  run.counters.sim.add_transaction(
      {.tid = Tid{1}, .handles = 3, .blocks = 5, .blocks_logged = 7, .committed = Time{}});
  run.counters.sim.add_fc_result(sim::FcStatus::ok, 1);
  run.counters.sim.add_fc_result(sim::FcStatus::ok, 1);
  r.phase("umount").elapsed = 500us;
  r.elapsed = 2s + 1500us;
  for (const std::uint64_t ns : {1000u, 2000u, 3000u}) r.latency_ns[OpKind::fsync].add(ns);
  return r;
}

TEST(Report, HasTheDocumentedShape) {
  const Json json = to_json(small_report());
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_THAT(keys, testing::ElementsAre("schema", "provenance", "config", "phase_order", "phases",
                                         "elapsed_ns", "throughput", "latency_ns", "failure"));
  EXPECT_EQ(json["schema"], "jbdlab.run/1");
  EXPECT_EQ(json["elapsed_ns"], 2'001'500'000);
  EXPECT_EQ(json["phase_order"].dump(), R"(["mount","run","umount"])");
  EXPECT_EQ(json["phases"]["run"]["elapsed_ns"], 2'000'000'000);
  EXPECT_EQ(json["phases"]["run"]["transactions_rle"].dump(), "[[3,5,7,1]]");
  EXPECT_EQ(json["phases"]["mount"]["full_commits"], 0);
  EXPECT_EQ(json["failure"], nullptr);
}

TEST(Report, SaysWhereItComesFrom) {
  EXPECT_EQ(to_json(small_report())["provenance"].dump(),
            R"({"version":"1.2.3","build_type":"Release","compiler":"GNU 12.2.0",)"
            R"("workload":"a.ops","workload_parameters":{},)"
            R"("workload_digest":"fnv1a64:e97cf2c29d891649","mkfs":"-b 4096","mount":"commit=60",)"
            R"("image":"","image_digest":"","image_size_bytes":268435456,"device":"ram",)"
            R"("device_parameters":{"flush_ns":0,"fua":false},"kernel":"6.18","settings":{},)"
            R"("cpus":2,"seed":42})");
  EXPECT_EQ(to_json(small_report())["config"].dump(),
            R"({"name":"a.ops","kernel":"6.18","mkfs":"-b 4096","mount":"commit=60",)"
            R"("mount_effective":"rw,relatime,commit=60","image_mib":256,"block_size":4096,)"
            R"("device":"ram","features":"has_journal extent","journal_blocks":4160,)"
            R"("journal_fc_blocks":64,"threads":1})");
}

TEST(Report, RatesAreThoseOfPhaseRun) {
  EXPECT_EQ(to_json(small_report())["throughput"].dump(),
            R"({"ops_per_s":3.5,"fsyncs_per_s":1.5,"commits_per_s":0.5,"fast_commits_per_s":1.0,)"
            R"("bytes_written_per_s":4096.0,"bytes_read_per_s":0.5})");
}

struct RateCase {
  const char* name;
  std::uint64_t bytes;
  Duration elapsed;
  std::uint64_t per_ks;
};
constexpr RateCase kRateCases[] = {
    {"no_time", 5, 0ns, 0},
    {"a_third", 1, 3s, 333},
    {"two_thirds_are_rounded_up", 2, 3s, 667},
    {"no_overflow_on_the_way", 1'000'000'000'000, 1s, 1'000'000'000'000'000},
    {"greatest_number_instead_of_overflow", ~std::uint64_t{0}, 1ns, ~std::uint64_t{0}},
};
class RateTest : public testing::TestWithParam<RateCase> {};
TEST_P(RateTest, IsExact) {
  Report r;
  r.phase("run").elapsed = GetParam().elapsed;
  r.phase("run").counters.bytes_written = GetParam().bytes;
  EXPECT_EQ(throughput(r).bytes_written_per_ks, GetParam().per_ks);
}
INSTANTIATE_TEST_SUITE_P(Report, RateTest, testing::ValuesIn(kRateCases),
                         [](const auto& row) { return row.param.name; });

TEST(Report, LatenciesAreOfOperationsThatHappened) {
  EXPECT_EQ(to_json(small_report())["latency_ns"].dump(),
            R"({"fsync":{"count":3,"p50":2007,"p95":3000,"p99":3000,"p999":3000,"max":3000}})");
}

TEST(Report, TellsTheFailureThatEndedTheRun) {
  Report r = small_report();
  r.failure = {.line = 12, .operation = "append a 4K", .what = "no space left"};
  EXPECT_EQ(to_json(r)["failure"].dump(),
            R"({"line":12,"operation":"append a 4K","what":"no space left"})");
  EXPECT_THAT(to_text(r),
              testing::EndsWith("\nfailed        line 12: append a 4K: no space left\n"));
}

TEST(Report, PhaseThatComesBackIsTheSame) {
  Report r;
  r.phase("a").elapsed = 1ns;
  r.phase("b");
  r.phase("a").elapsed += 2ns;
  ASSERT_EQ(r.phases.size(), 2u);
  EXPECT_EQ(r.phases[0].elapsed, 3ns);
  EXPECT_EQ(r.find_phase("b"), &r.phases[1]);
  EXPECT_EQ(r.find_phase("c"), nullptr);
}

TEST(Report, DigestTellsTextsApart) {
  EXPECT_EQ(text_digest(""), "fnv1a64:cbf29ce484222325");
  EXPECT_EQ(text_digest("a"), "fnv1a64:af63dc4c8601ec8c");
  EXPECT_NE(text_digest("fsync a\n"), text_digest("fsync b\n"));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    EXPECT_NE(end, text.npos) << "last line has no end";
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

TEST(ReportText, ShowsTheMainCounters) {
  const std::string text = to_text(small_report());
  EXPECT_THAT(lines_of(text),
              testing::IsSupersetOf<std::string_view>({
                  "jbdlab        1.2.3 (Release, GNU 12.2.0)",
                  "workload      a.ops, 1 thread, fnv1a64:e97cf2c29d891649",
                  "file system   256.0 MiB, 4096-byte blocks, mke2fs -b 4096",
                  "mount         commit=60",
                  "journal       4160 blocks, 64 of them for fast commits",
                  "device        ram flush_ns=0 fua=no",
                  "kernel        6.18, 2 cpus, seed 42",
                  "phase                                  mount           run        umount",
                  "simulated time                      1.000 ms       2.000 s    500.000 us",
                  "operations                                 -             7             -",
                  "bytes written by operations                -       8.0 KiB             -",
                  "full commits                               -             1             -",
                  "  log blocks they took                     -             7             -",
                  "fast commits                               -             2             -",
                  "written                                    -      12.0 KiB             -",
                  "  super, group descriptors                 -       4.0 KiB             -",
                  "total time    2.002 s",
                  "latency                count           p50           p95           p99         "
                  "p99.9           max",
                  "fsync                      3      2.007 us      3.000 us      3.000 us      "
                  "3.000 us      3.000 us",
              }));
}

TEST(ReportText, FitsIn100Columns) {
  Report r = small_report();
  r.provenance.mkfs_options = std::string(150, 'x') + " -b 4096 -O " + std::string(90, 'y');
  for (int i = 0; i < 20; ++i)
    r.provenance.settings.push_back({"some_setting_ns", std::to_string(i)});
  for (int i = 0; i < 7; ++i)
    r.phase("a_phase_with_a_very_long_name_" + std::to_string(i)).elapsed = Duration::max();
  r.failure = {.line = 1, .operation = "fsync " + std::string(7994, 'a'), .what = "ENOENT"};
  const std::string text = to_text(r);
  std::size_t phase_headings = 0;
  for (const std::string_view line : lines_of(text)) {
    EXPECT_LE(line.size(), 100u) << line;
    phase_headings += line.starts_with("phase ");
  }
  EXPECT_EQ(phase_headings, 2u);  // ten phases in two tables
  for (const char* kept : {"some_setting_ns=19", "-b 4096 -O", "ENOENT"})
    EXPECT_THAT(text, testing::HasSubstr(kept));
}

TEST(Report, OfTheSameRunIsTheSameBytes) {
  EXPECT_EQ(to_json(small_report()).dump(1), to_json(small_report()).dump(1));
  EXPECT_EQ(to_text(small_report()), to_text(small_report()));
}

TEST(Report, OfNothingIsWhole) {
  const Json json = to_json(Report{});
  EXPECT_EQ(json["phases"].dump(), "{}");
  EXPECT_EQ(json["latency_ns"].dump(), "{}");
  EXPECT_EQ(json["throughput"]["ops_per_s"], 0.0);
  EXPECT_THAT(to_text(Report{}), testing::HasSubstr("total time    0 ns\n"));
}

}  // namespace
}  // namespace jbdlab::workloads
