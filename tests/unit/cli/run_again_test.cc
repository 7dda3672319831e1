// The same run again: the same bytes. Other seeds, other builds, and runs that go on where the last
// one left the file system.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/cli/run_support.h"

namespace jbdlab::test {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  const char* name;
  const char* script;
  Words options;
};
constexpr const char* kSyncs =
    "mkdir d\nsyncfs\nmark run\ncreate d/a\nappend d/a 8K 20\nfsync d/a\ncreate d/b 600\n"
    "write d/b 5 4K\nfdatasync d/b\nsleepms 6000\nopen d/s creat sync\nappend d/s 1M\nfsync d\n";
constexpr const char* kThreads =
    "t0: mkdir d0\nt1: mkdir d1\nt2: mkdir d2\nbarrier\n"
    "t0: create d0/f\nt0: append d0/f 4K 30\nt0: fsync d0/f\n"
    "t1: create d1/f\nt1: append d1/f 64K 4\nt1: fdatasync d1/f\n"
    "t2: create d2/f\nt2: append d2/f 100\nt2: fsync d2/f\nbarrier\nt1: syncfs\n";

class SameRun : public RunVerb, public testing::WithParamInterface<Row> {
 protected:
  struct Outputs {
    std::string json, text, image, trace;
  };
  Outputs outputs(const Words& more = {}, const std::string& program_path = program()) const {
    Words words{"ops", "--size", "64M", "--image-out", "image", "--trace-out", "trace"};
    words.insert(words.end(), GetParam().options.begin(), GetParam().options.end());
    words.insert(words.end(), more.begin(), more.end());
    const Ran text = ask(words, program_path);
    EXPECT_EQ(text.exit_status, 0) << text.err;
    words.emplace_back("--json");
    const Ran json = ask(words, program_path);
    return {json.out, text.out, read("image"), read("trace")};
  }
  void SetUp() override { write("ops", GetParam().script); }
};

// The report without what says who made it.
std::string anonymous(const std::string& json, const std::string& seed_too = "") {
  Json report = Json::parse(json);
  for (const char* key : {"build_type", "compiler", "version"}) report["provenance"].erase(key);
  if (!seed_too.empty()) report["provenance"].erase(seed_too);
  return report.dump();
}

TEST_P(SameRun, GivesTheSameBytes) {
  const Outputs one = outputs({"--seed", "9"});
  const Outputs other = outputs({"--seed", "9"});
  EXPECT_EQ(one.json, other.json);
  EXPECT_EQ(one.text, other.text);
  EXPECT_TRUE(one.trace == other.trace);
  EXPECT_TRUE(one.image == other.image);
}

// Inode generations are all that is random on a device without chance.
TEST_P(SameRun, WithAnotherSeedCountsTheSame) {
  const auto& options = GetParam().options;
  if (std::find(options.begin(), options.end(), "loop-file") != options.end()) {
    const Outputs one = outputs({"--seed", "1"});
    const Outputs other = outputs({"--seed", "2"});
    EXPECT_NE(one.trace, other.trace) << "flushes of a disk take as long as chance has it";
    return;
  }
  const Outputs one = outputs({"--seed", "1"});
  const Outputs other = outputs({"--seed", "2"});
  EXPECT_EQ(anonymous(one.json, "seed"), anonymous(other.json, "seed"));
  EXPECT_NE(one.json, other.json) << "the seed is not in the report";
  EXPECT_TRUE(one.trace == other.trace);
  EXPECT_FALSE(one.image == other.image);
}

// JBDLAB_OTHER_PROGRAM: another build of the same sources, with sanitizers, say.
TEST_P(SameRun, OfAnotherBuildGivesTheSameBytes) {
  const char* other_program = std::getenv("JBDLAB_OTHER_PROGRAM");
  if (other_program == nullptr) GTEST_SKIP() << "JBDLAB_OTHER_PROGRAM names no other build";
  const Outputs one = outputs();
  const Outputs other = outputs({}, other_program);
  EXPECT_EQ(anonymous(one.json), anonymous(other.json));
  EXPECT_TRUE(one.trace == other.trace);
  EXPECT_TRUE(one.image == other.image);
}

INSTANTIATE_TEST_SUITE_P(
    Runs, SameRun,
    testing::Values(Row{"Syncs", kSyncs, {}}, Row{"Threads", kThreads, {}},
                    Row{"ThreadsOnThreeProcessors", kThreads, {"--cpus", "3"}},
                    Row{"OnAFileOnADisk", kSyncs, {"--device", "loop-file"}},
                    Row{"SmallBlocks", kThreads, {"--mkfs", "-b 1024"}},
                    Row{"CutOff", kThreads, {"--crash-at", "op:11", "--keep", "seed:4"}},
                    Row{"CutOffAtAStep", kSyncs, {"--crash-at", "step:60", "--keep", "durable"}}),
    [](const auto& row) { return row.param.name; });

// ----- from an image -----

struct ImageRow {
  const char* name;
  const char* mkfs;
};
class FromImage : public RunVerb, public testing::WithParamInterface<ImageRow> {
 protected:
  Json log(const std::string& image) const {
    const Ran ran = run({program(), "log", "--json", file(image).string()});
    EXPECT_EQ(ran.exit_status, 0) << ran.err;
    return Json::parse(ran.out)["journal"];
  }
};

// Three runs, each on what the one before left: the log goes on where it ended, with later tids.
TEST_P(FromImage, GoesOnWhereTheLastRunEnded) {
  write("ops0", "mkdir d\ncreate d/a\nappend d/a 20K\nfsync d/a\n");
  write("ops1", "create d/b\nappend d/b 4K\nfsync d/b\nappend d/a 3K\nfsync d/a\n");
  write("ops2", "write d/a 2K 4K\ncreate c\nfsync c\nopen d/b\nfdatasync d/b\n");
  ASSERT_EQ(ask({"ops0", "--size", "64M", "--mkfs", GetParam().mkfs, "--image-out", "0"}).err, "");
  for (const int i : {1, 2}) {
    const std::string from = std::to_string(i - 1);
    const std::string to = std::to_string(i);
    const std::string before = read(from);
    const Ran ran = ask({"ops" + to, "--image", from, "--image-out", to, "--json"});
    ASSERT_EQ(ran.exit_status, 0) << ran.err;
    EXPECT_TRUE(read(from) == before) << "the image that it started from has changed";
    e2fsck_is_content(to);
    const Json report = Json::parse(ran.out);
    EXPECT_EQ(report["provenance"]["image"], from);
    EXPECT_NE(report["provenance"]["image_digest"], "");
    const Json old_log = log(from);
    const Json new_log = log(to);
    std::uint64_t commits = 0;
    std::uint64_t logged = 0;
    for (const auto& [name, phase] : report["phases"].items()) {
      commits += phase["full_commits"].get<std::uint64_t>();
      logged += phase["tx_blocks_logged"].get<std::uint64_t>();
    }
    EXPECT_GE(commits, 1U);
    // A clean log names the tid that is due. A mount does not take it but the next one
    // (jbd2_journal_recover), and an unmount leaves out one more (jbd2_journal_destroy).
    EXPECT_EQ(new_log["sequence"], old_log["sequence"].get<std::uint64_t>() + commits + 2);
    EXPECT_EQ(new_log["next_log_block"], old_log["next_log_block"].get<std::uint64_t>() + logged);
    EXPECT_EQ(new_log["start"], 0);
  }
  const std::string a = must_run({"debugfs", "-R", "cat d/a", file("2").string()});
  EXPECT_EQ(a.size(), 23U << 10);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, FromImage,
                         testing::Values(ImageRow{"Usual", ""}, ImageRow{"SmallBlocks", "-b 1024"},
                                         ImageRow{"NoChecksums", "-O ^metadata_csum,^64bit"},
                                         ImageRow{"OldInodes", "-I 128 -b 2048"},
                                         ImageRow{"SmallJournal", "-J size=4"}),
                         [](const auto& row) { return row.param.name; });

// Another digest for every change of the image, even where only the place of the bytes changes.
TEST_F(RunVerb, TellsImagesApart) {
  write("ops", "create a\n");
  ASSERT_EQ(ask({"ops", "--size", "32M", "--image-out", "image"}).err, "");
  std::string bytes = read("image");
  const auto digest = [&] {
    write("changed", bytes);
    const Ran ran = ask({"ops", "--image", "changed", "--json"});
    return Json::parse(ran.out)["provenance"]["image_digest"].get<std::string>();
  };
  write("ops", "create b\n");
  const std::string original = digest();
  EXPECT_EQ(original, digest());
  bytes[(30U << 20) + 5] = 'x';
  const std::string one = digest();
  bytes[(30U << 20) + 5] = '\0';
  bytes[(31U << 20) + 5] = 'x';
  const std::string other = digest();
  EXPECT_NE(original, one);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace jbdlab::test
