// Every counter of a report, counted once more from the trace that the same run wrote, from its
// script, and from the image that it left.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/trace_recount.h"
#include "tests/unit/cli/run_support.h"
#include "workloads/counters.h"

namespace jbdlab::test {
namespace {

using Json = nlohmann::ordered_json;
using sim::SectorClass;
using sim::SectorClassifier;
using workloads::OpKind;
using workloads::PhaseCounters;

struct Row {
  const char* name;
  const char* script;
  int repeat;  // the script's text, this often, each %d its number
  Words options;
  int exit_status = 0;
};

constexpr const char* kAllSyncs =
    "mark setup\nmkdir d\nsyncfs\nmark run\n"
    "create d/a\nappend d/a 8K\nfsync d/a\ncreate d/b 600\nwrite d/b 3 4K 3\nfdatasync d/b\n"
    "open d/s creat sync\nwrite d/s 0 4K 2\nopen d/t creat dsync\nappend d/t 100\nfsync d\n"
    "stat d/none\nchmod d/a 600\nclose d/a\nwritemagic d/b 0 8K\nsync\nsleepms 7000\n"
    "mark again\nappend d/b 4K\nfsync d/b\nfsync d/b\nmark run\ncreate c\nsyncfs\n";
constexpr const char* kThreads =
    "mark run\nt0: mkdir d0\nt1: mkdir d1\nbarrier\n"
    "t0: create d0/f\nt0: append d0/f 4K 20\nt0: fsync d0/f\nt1: create d1/f\n"
    "t1: append d1/f 64K\nt1: fdatasync d1/f\nbarrier\nt0: create d1/g\nt0: fsync d1/g\n"
    "t1: create d0/g\nt1: fsync d0/g\n";
// Each piece is an extent of its own with a handle reserved for its conversion: more than the
// journal has room for at a time.
constexpr const char* kPieces = "open f creat\nwrite f %d6K 1K\n";
constexpr const char* kManyCommits = "create f%d\nappend f%d 4K\nfsync f%d\nclose f%d\n";

std::string text_of(const Row& row) {
  std::string text;
  for (int i = 0; i < row.repeat; ++i) {
    std::string part = row.script;
    for (std::size_t at; (at = part.find("%d")) != std::string::npos;) {
      part.replace(at, 2, std::to_string(i));
    }
    text += part;
  }
  return text;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  const std::string_view unit(end, text.data() + text.size());
  return unit == "K" ? value << 10 : unit == "M" ? value << 20 : value;
}

// Where dumpe2fs and debugfs see the fixed parts of `image`.
SectorClassifier places(const std::string& image, std::uint32_t block_size) {
  std::vector<SectorClassifier::Range> ranges;
  const auto add = [&](const std::string& run, SectorClass what) {
    const std::size_t dash = run.find('-');
    const std::uint64_t first = number(run);
    const std::uint64_t last = dash == std::string::npos ? first : number(run.substr(dash + 1));
    ranges.push_back({FsBlock{first}, FsBlock{last + 1}, what});
  };
  struct Place {
    const char* words;
    SectorClass what;
  };
  constexpr std::array kPlaces{Place{"superblock at ", SectorClass::super},
                               Place{"Group descriptors at ", SectorClass::gdt},
                               Place{"Reserved GDT blocks at ", SectorClass::gdt},
                               Place{"Block bitmap at ", SectorClass::block_bitmap},
                               Place{"Inode bitmap at ", SectorClass::inode_bitmap},
                               Place{"Inode table at ", SectorClass::inode_table}};
  const std::string groups = must_run({"dumpe2fs", image});
  for (const auto& [words, what] : kPlaces) {
    const std::string_view key = words;
    for (std::size_t at = groups.find(key); at != std::string::npos; at = groups.find(key, at)) {
      at += key.size();
      add(groups.substr(at, groups.find_first_of(" ,\n", at) - at), what);
    }
  }
  SectorClass what = SectorClass::journal_super;
  const auto blocks = lines_of(must_run({"debugfs", "-R", "blocks <8>", image}));
  for (const auto& block : words_of(blocks.at(0))) {
    add(block, what);
    what = SectorClass::journal_log;
  }
  return {block_size, std::move(ranges)};
}

// The operations of a script by thread, for what a trace does not say of them.
class ScriptLines {
 public:
  explicit ScriptLines(const std::string& text) {
    for (const auto& line : lines_of(text)) {
      auto words = words_of(line);
      unsigned thread = 0;
      if (words[0].ends_with(':')) {
        thread = static_cast<unsigned>(number(words[0].substr(1)));
        words.erase(words.begin());
      }
      if (words[0] != "mark" && words[0] != "barrier") lines_[thread].push_back(words);
    }
  }
  Words next(unsigned thread) {
    if (lines_[thread].empty()) return {"nothing"};
    Words words = lines_[thread].front();
    lines_[thread].pop_front();
    return words;
  }

 private:
  std::map<unsigned, std::deque<Words>> lines_;
};

struct Phase {
  PhaseCounters counters;
  std::uint64_t elapsed_ns = 0;
};
struct Recount {
  std::map<std::string, Phase> phases;
  std::vector<sim::TransactionRecord> transactions;
  std::vector<std::string> unknown;
};

Recount recount(const std::string& trace, const std::string& script, std::uint64_t end_ns,
                SectorClassifier classifier) {
  Recount all;
  TraceRecount counting(std::move(classifier));
  ScriptLines lines(script);
  std::string phase;
  std::uint64_t began_ns = 0;
  std::size_t ops = 0;
  const auto end_phase = [&](std::uint64_t now_ns) {
    if (phase.empty()) return;
    const auto& made = counting.counters.transactions;
    all.transactions.insert(all.transactions.end(), made.begin(), made.end());
    all.phases[phase].counters.sim += sim::take(counting.counters);
    all.phases[phase].elapsed_ns += now_ns - began_ns;
    began_ns = now_ns;
  };
  std::uint64_t last_ns = 0;
  for (const auto& line : lines_of(trace)) {
    const std::uint64_t now_ns = number(line.substr(0, line.find(' ')));
    EXPECT_GE(now_ns, last_ns) << line;
    last_ns = now_ns;
    if (words_of(line)[1] == "phase") end_phase(now_ns);
    counting.line(line);
    if (words_of(line)[1] == "phase") phase = counting.phases.back();
    for (; ops < counting.ops.size(); ++ops) {
      const auto& [verb, thread] = counting.ops[ops];
      const Words words = lines.next(thread);
      EXPECT_EQ(words[0], verb) << line;
      PhaseCounters& counters = all.phases[phase].counters;
      for (std::size_t kind = 0; kind < workloads::kOpKindCount; ++kind) {
        if (workloads::op_name(static_cast<OpKind>(kind)) == verb) {
          ++counters.ops[static_cast<OpKind>(kind)];
        }
      }
      const bool append = verb == "append";
      if (!append && verb != "write" && verb != "writemagic") continue;
      const std::size_t length = append ? 2 : 3;
      counters.bytes_written +=
          number(words.at(length)) * (words.size() > length + 1 ? number(words.at(length + 1)) : 1);
    }
  }
  end_phase(end_ns);
  all.unknown = counting.unknown;
  return all;
}

class Recounted : public RunVerb, public testing::WithParamInterface<Row> {
 protected:
  void simulate() {
    script_ = text_of(GetParam());
    write("ops", script_);
    Words words{"ops", "--json", "--trace-out", "trace", "--image-out", "image"};
    words.insert(words.end(), GetParam().options.begin(), GetParam().options.end());
    const Ran ran = ask(words);
    ASSERT_EQ(ran.exit_status, GetParam().exit_status) << ran.err;
    report_ = Json::parse(ran.out);
    recount_ = recount(read("trace"), script_, report_["elapsed_ns"].get<std::uint64_t>(),
                       places(file("image").string(), report_["config"]["block_size"]));
  }

  std::string script_;
  Json report_;
  Recount recount_;
};

TEST_P(Recounted, TraceAndScriptGiveEveryCounter) {
  ASSERT_NO_FATAL_FAILURE(simulate());
  EXPECT_EQ(recount_.unknown, std::vector<std::string>{});
  EXPECT_EQ(report_["phases"].size(), recount_.phases.size());
  std::uint64_t elapsed_ns = 0;
  std::uint64_t writes = 0;
  for (const auto& [name, phase] : recount_.phases) {
    ASSERT_TRUE(report_["phases"].contains(name)) << name;
    const Json& reported = report_["phases"][name];
    Json counted = workloads::to_json(phase.counters);
    EXPECT_GT(counted.size(), 40U);
    for (const auto& [key, value] : counted.items()) {
      EXPECT_EQ(reported[key], value) << name << "." << key;
    }
    EXPECT_EQ(reported["elapsed_ns"], phase.elapsed_ns) << name;
    EXPECT_EQ(reported.size(), counted.size() + 1) << name;  // elapsed_ns is all that is more
    elapsed_ns += phase.elapsed_ns;
    writes += phase.counters.sim.bio_writes;
  }
  EXPECT_EQ(elapsed_ns, report_["elapsed_ns"]);
  EXPECT_GT(writes, 2U);
  const auto& ops = report_["phases"]["run"]["ops"];
  for (const auto& [kind, latency] : report_["latency_ns"].items()) {
    EXPECT_EQ(latency["count"], ops[kind]) << kind;
  }
}

class RecountedImage : public Recounted {};

TEST_P(RecountedImage, HoldsWhatTheTraceSays) {
  ASSERT_NO_FATAL_FAILURE(simulate());
  e2fsck_is_content("image");

  // Each transaction that is still in the log, as long as the trace says.
  const Ran log = run({program(), "log", "--all", "--json", file("image").string()});
  ASSERT_EQ(log.exit_status, 0) << log.err;
  const Json found = Json::parse(log.out);
  std::map<std::uint32_t, sim::TransactionRecord> by_tid;
  for (const auto& record : recount_.transactions) by_tid[record.tid.value()] = record;
  EXPECT_EQ(by_tid.size(), recount_.transactions.size()) << "a tid came twice";
  const std::uint32_t first = found["journal"]["first"];
  const std::uint32_t ring = found["journal"]["end"].get<std::uint32_t>() - first;
  std::uint32_t logged = 0;
  std::size_t whole = 0;  // of the last transactions, as many as the ring holds
  for (auto record = recount_.transactions.rbegin(); record != recount_.transactions.rend();
       ++record) {
    logged += record->blocks_logged;
    if (logged > ring) break;
    ++whole;
  }
  const std::size_t older = recount_.transactions.size() - whole;
  std::size_t in_log = 0;
  for (const Json& transaction : found["transactions"]) {
    const std::uint32_t tid = transaction["tid"];
    ASSERT_TRUE(by_tid.contains(tid)) << tid;
    if (older > 0 && !Tid{tid}.after(recount_.transactions[older - 1].tid)) continue;
    ++in_log;
    EXPECT_EQ(transaction["blocks"].size(), by_tid[tid].blocks) << tid;
    const std::uint32_t length = (transaction["commit_log_block"].get<std::uint32_t>() + ring -
                                  transaction["log_block"].get<std::uint32_t>()) %
                                     ring +
                                 1;
    EXPECT_EQ(length, by_tid[tid].blocks_logged) << tid;
  }
  EXPECT_EQ(in_log, whole);

  // As many inodes as the script has names for, and the sums of the groups in the superblock.
  std::set<std::string> made;
  for (const auto& line : lines_of(script_)) {
    auto words = words_of(line);
    if (words[0].ends_with(':')) words.erase(words.begin());
    if (words[0] == "create" || words[0] == "mkdir") made.insert(words[1]);
    if (words[0] == "open" && words.at(2) == "creat") made.insert(words[1]);
  }
  std::map<std::string, std::uint64_t> header;
  std::uint64_t free_blocks = 0, free_inodes = 0;
  for (const auto& line : lines_of(must_run({"dumpe2fs", file("image").string()}))) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && !line.starts_with(' ')) {
      const auto words = words_of(line.substr(colon + 1));
      if (!words.empty()) header[line.substr(0, colon)] = number(words[0]);
    }
    const auto words = words_of(line);
    if (words.size() > 4 && words[1] == "free" && words[2] == "blocks,") {
      free_blocks += number(words[0]);
      free_inodes += number(words[3]);
    }
  }
  EXPECT_EQ(header["Free inodes"], free_inodes);
  EXPECT_EQ(header["Free blocks"], free_blocks);
  EXPECT_EQ(header["Inode count"] - free_inodes, 11 + made.size());
}

const std::array kRows{
    Row{"AllKindsOfSyncs", kAllSyncs, 1, {}},
    Row{"AllKindsOfSyncsOnAFileOnADisk", kAllSyncs, 1, {"--device", "loop-file"}},
    Row{"WithoutBarriers", kAllSyncs, 1, {"--mount", "nobarrier,commit=1"}},
    Row{"SmallBlocks", kAllSyncs, 1, {"--mkfs", "-b 1024", "--size", "64M"}},
    Row{"NoChecksumsOldInodes",
        kAllSyncs,
        1,
        {"--mkfs", "-O ^metadata_csum,^64bit -I 128", "--size", "64M"}},
    Row{"TwoThreads", kThreads, 1, {"--cpus", "2"}},
    Row{"TwoThreadsOfOneProcessor", kThreads, 1, {"--cpus", "1", "--seed", "5"}},
    Row{"LogThatWraps", kManyCommits, 400, {"--mkfs", "-J size=4", "--size", "128M"}},
    Row{"LogThatWrapsInSmallBlocks",
        kManyCommits,
        400,
        {"--mkfs", "-b 1024 -J size=1", "--size", "64M"}},
    Row{"OperationThatFails", "create a\nappend a 4K\nmkdir a\n", 1, {}, 1},
    Row{"FileInManyPieces", kPieces, 100, {"--mkfs", "-b 1024 -J size=1", "--size", "64M"}}};
const std::array kCuts{
    Row{"CutAtAnOperation", kManyCommits, 20, {"--crash-at", "op:33"}},
    Row{"CutAtAStep", kAllSyncs, 1, {"--crash-at", "step:80", "--keep", "durable"}},
    Row{"CutAtATime", kThreads, 1, {"--crash-at", "800us"}},
    Row{"CutWithFullPlugs",
        kPieces,
        100,
        {"--mkfs", "-b 1024", "--size", "64M", "--crash-at", "step:100"}}};
constexpr auto kName = [](const auto& row) { return row.param.name; };

INSTANTIATE_TEST_SUITE_P(Runs, Recounted, testing::ValuesIn(kRows), kName);
INSTANTIATE_TEST_SUITE_P(Cuts, Recounted, testing::ValuesIn(kCuts), kName);
INSTANTIATE_TEST_SUITE_P(Runs, RecountedImage, testing::ValuesIn(kRows), kName);

}  // namespace
}  // namespace jbdlab::test
