// The journals of tests/corpus/images: what kernels wrote, held against what debugfs logdump says
// of the ring and what the kernel replayed of the fast commits.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kNoJournal{"ext2_nojournal", "ext4_nojournal"};
// e2fsprogs 1.47 walks past the end of the ring where there is a fast-commit area.
const std::set<std::string> kLogdumpWrong{"wrapped_fc"};
// No reader can tell these from a sound log.
const std::set<std::string> kInvisible{"bad_sequence", "bad_data_block_nocsum"};
// Sound logs that are worth a warning all the same.
const std::set<std::string> kWarned{"fc_area_full", "fc_area_full_rename", "fc_torn_first",
                                    "journal_errno", "hole_commit"};

bool damaged(const std::string& name) {
  return name.starts_with("bad_") || name == "self_reference" || name == "loop_ring";
}

std::vector<std::string> image_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "tests/corpus/images")) {
    const std::string name = entry.path().filename();
    if (!kNoJournal.contains(name) && name != "truncated") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::uint32_t number_after(const std::string& text, const std::string& key) {
  const auto at = text.find(key);
  return at == std::string::npos
             ? 0
             : static_cast<std::uint32_t>(std::stoul(text.substr(at + key.size())));
}

class Corpus : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!test::run({"debugfs", "-V"}).ok() || !test::run({"xz", "--version"}).ok()) {
      GTEST_SKIP() << "debugfs and xz are not installed";
    }
    folder_ = test::source_dir() / "tests/corpus/images" / GetParam();
    const std::string facts = test::read_file(folder_ / "facts.json");
    block_size_ = number_after(facts, "\"block_size\": ");
    const fs::path image = temporary_.path() / "image";
    const fs::path journal = temporary_.path() / "journal";
    test::unpack_xz(folder_ / "image.xz", image);
    options_.fs_block_count = fs::file_size(image) / block_size_;
    if (fs::exists(folder_ / "journal.xz")) {
      test::unpack_xz(folder_ / "journal.xz", journal);
      options_.superblock = LogBlock{1};
    } else {
      test::must_run({"debugfs", "-R", "dump <8> " + journal.string(), image.string()});
      std::string blocks = test::must_run({"debugfs", "-R", "blocks <8>", image.string()});
      std::ranges::replace(blocks, '\n', ' ');
      for (const std::string& word : test::words_of(blocks)) {
        const std::uint64_t b = std::stoull(word);
        options_.journal_blocks.push_back({FsBlock{b}, FsBlock{b + 1}});
      }
      std::ranges::sort(options_.journal_blocks, {}, &FsBlockRange::first);
    }
    bytes_ = test::read_file(journal);
  }
  Result<LogContents> read(bool all) {
    options_.all = all;
    MemoryBlockSource source(std::as_bytes(std::span(bytes_)), block_size_);
    return read_log(source, options_);
  }

  void ring_is_what_debugfs_listed();
  void fast_commits_are_what_the_kernel_replayed();
  void damage_is_found_and_nothing_else();

  test::TempDir temporary_;
  fs::path folder_;
  std::uint32_t block_size_ = 0;
  std::string bytes_;
  LogReadOptions options_;
};

using Pairs = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

// Tags and revokes of the live log as debugfs lists them.
std::pair<Pairs, std::vector<std::uint64_t>> logdump(const std::string& text) {
  static const std::regex tag(
      R"(^\s+FS block (\d+) logged at (?:sequence \d+, )?journal block (\d+).*)");
  static const std::regex revoke(R"(.*Revoke FS block (\d+).*)");
  Pairs tags;
  std::vector<std::uint64_t> revokes;
  for (const std::string& line : test::lines_of(text.substr(0, text.find("*** Fast Commit")))) {
    std::smatch m;
    if (std::regex_match(line, m, tag)) {
      tags.emplace_back(std::stoull(m[1]), static_cast<std::uint32_t>(std::stoul(m[2])));
    } else if (std::regex_match(line, m, revoke)) {
      revokes.push_back(std::stoull(m[1]));
    }
  }
  std::ranges::sort(tags);
  std::ranges::sort(revokes);
  return {tags, revokes};
}

void Corpus::ring_is_what_debugfs_listed() {
  if (damaged(GetParam()) || kLogdumpWrong.contains(GetParam())) return;
  const auto log = read(false);
  ASSERT_TRUE(log) << log.error().what;
  Pairs tags;
  std::vector<std::uint64_t> revokes;
  for (const LogTransaction& t : log->transactions) {
    if (t.state != LogState::replayable && t.state != LogState::incomplete) continue;
    EXPECT_EQ(t.state == LogState::replayable, t.time.has_value());
    for (const LoggedBlock& b : t.blocks) {
      tags.emplace_back(b.fs_block.value(), b.log_block.value());
    }
    for (const RevokedBlock& r : t.revoked) revokes.push_back(r.fs_block.value());
  }
  std::ranges::sort(tags);
  std::ranges::sort(revokes);
  const auto want = logdump(test::read_file(folder_ / "logdump.txt"));
  EXPECT_EQ(tags, want.first);
  EXPECT_EQ(revokes, want.second);
}

void Corpus::fast_commits_are_what_the_kernel_replayed() {
  const fs::path replayed = folder_ / "fc_replay.txt";
  if (!fs::exists(replayed) || fs::exists(folder_ / "want.tsv")) return;
  static const std::regex line(R"(ext4_fc_replay tag (\d+), ino (\d+).*)");
  Pairs want;
  for (const std::string& text : test::lines_of(test::read_file(replayed))) {
    std::smatch m;
    if (std::regex_match(text, m, line) && std::stoul(m[1]) <= 6) {
      want.emplace_back(std::stoul(m[1]), static_cast<std::uint32_t>(std::stoul(m[2])));
    }
  }
  const auto log = read(true);
  ASSERT_TRUE(log) << log.error().what;
  Pairs got;
  for (const LogFastCommit& f : log->fast_commits) {
    if (f.state != LogState::replayable) continue;
    for (const FastCommitEntry& e : f.tags) {
      if (static_cast<int>(e.tag) <= 6) {
        got.emplace_back(static_cast<std::uint64_t>(e.tag), e.ino.value());
      }
    }
  }
  EXPECT_EQ(got, want);
}

void Corpus::damage_is_found_and_nothing_else() {
  for (const bool all : {false, true}) {
    const auto log = read(all);
    if (!log) {
      EXPECT_TRUE(damaged(GetParam())) << log.error().what;
      continue;
    }
    const bool warned = std::ranges::any_of(
        log->findings, [](const Finding& f) { return f.severity != Severity::note; });
    const bool want =
        kWarned.contains(GetParam()) || (damaged(GetParam()) && !kInvisible.contains(GetParam()));
    EXPECT_EQ(warned, want) << finding_ids(*log);
  }
}

// One test an image: unpacking takes longer than reading.
TEST_P(Corpus, JournalIsRead) {
  ring_is_what_debugfs_listed();
  fast_commits_are_what_the_kernel_replayed();
  damage_is_found_and_nothing_else();
}

INSTANTIATE_TEST_SUITE_P(Images, Corpus, testing::ValuesIn(image_names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace jbdlab::jbd2
