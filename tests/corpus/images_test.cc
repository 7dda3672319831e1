// Holds `jbdlab inspect` and `jbdlab log` against what dumpe2fs, debugfs and the kernel said about
// each image of the corpus, and `jbdlab stats` against `log`. A folder below images/ is a test;
// nothing is listed here but exceptions.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"

namespace jbdlab::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array kNoJournal =
    std::to_array<std::string_view>({"ext2_nojournal", "ext4_nojournal"});

// Their journal superblock, or the ring it describes, cannot be used: `log` may refuse them.
constexpr std::array kUnusable = std::to_array<std::string_view>(
    {"bad_jsb_zero", "bad_jsb_magic", "bad_maxlen", "bad_jsb_csum", "bad_start_range", "loop_ring",
     "self_reference", "bad_first_zero"});

// Damaged so that nothing in the bytes tells it from a sound log.
constexpr std::array kNoFinding =
    std::to_array<std::string_view>({"bad_sequence", "bad_data_block_nocsum"});

// debugfs 1.47 walks past the end of the ring where fast-commit blocks lie behind it.
constexpr std::array kLogdumpWrong = std::to_array<std::string_view>({"wrapped_fc"});

bool is_damaged(std::string_view name) {
  return name.starts_with("bad_") || name.starts_with("truncated") || name == "self_reference" ||
         name == "loop_ring";
}

bool may_refuse(std::string_view verb, std::string_view name) {
  return name.starts_with("truncated") ||
         (verb != "inspect" && (is_in(kNoJournal, name) || is_in(kUnusable, name)));
}

std::vector<std::string> image_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir() / "tests/corpus/images")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::set<std::string> word_set(const json& text) {
  const auto words = words_of(text.get<std::string>());
  return {words.begin(), words.end()};
}

std::set<std::string> string_set(const json& list) { return list.get<std::set<std::string>>(); }

class Corpus : public testing::TestWithParam<std::string> {
 protected:
  const std::string& name() const { return GetParam(); }
  fs::path file(const char* file_name) const {
    return source_dir() / "tests/corpus/images" / name() / file_name;
  }
  json facts() const { return json::parse(read_file(file("facts.json"))); }

  // Asks the program, checks what holds for every image and verb, and gives its document, or
  // nothing where it refused the image, and may.
  std::optional<json> ask(const std::string& verb) {
    const fs::path image = dir_.path() / "image";
    unpack_xz(file("image.xz"), image);
    std::vector<std::string> argv{program(), verb, image.string(), "--json"};
    if (fs::exists(file("journal.xz"))) {
      const fs::path journal = dir_.path() / "journal";
      unpack_xz(file("journal.xz"), journal);
      argv.insert(argv.end(), {"--journal", journal.string()});
    }
    const std::string before = read_file(image);
    const Ran ran =
        run(argv, {.timeout = std::chrono::seconds{60}, .folder = {}, .environment = {}});
    EXPECT_TRUE(read_file(image) == before) << "the input image was modified";
    exit_status_ = ran.exit_status;
    if (ran.exit_status == 3 && may_refuse(verb, name())) {
      EXPECT_NE(ran.err, "") << "refused without a sentence";
      return std::nullopt;
    }
    if (ran.exit_status != 0 && ran.exit_status != 1) {
      ADD_FAILURE() << describe(argv, ran);
      return std::nullopt;
    }
    json document = json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
    if (document.is_discarded()) {
      ADD_FAILURE() << "standard output is not one JSON document: " << describe(argv, ran);
      return std::nullopt;
    }
    EXPECT_EQ(document.value("schema", ""), fmt::format("jbdlab.{}/1", verb));
    const json findings = document.value("findings", json::array());
    // A note is worth saying, and nothing wrong.
    const bool wrong = std::any_of(findings.begin(), findings.end(), [](const json& finding) {
      return finding.value("severity", "") != "note";
    });
    EXPECT_EQ(ran.exit_status == 1, wrong) << "exit 1 is for findings: " << findings;
    for (const auto& finding : findings) {
      EXPECT_NE(finding.value("id", ""), "") << finding;
      EXPECT_NE(finding.value("text", ""), "") << finding;
    }
    return document;
  }

  int exit_status() const { return exit_status_; }

 private:
  TempDir dir_;
  int exit_status_ = -1;
};

class CorpusInspect : public Corpus {};
class CorpusLog : public Corpus {};
class CorpusStats : public Corpus {};

TEST_P(CorpusInspect, SaysWhatDumpe2fsSays) {
  const auto document = ask("inspect");
  if (!document || name().starts_with("truncated")) {
    return;
  }
  const json want = facts();
  const json& filesystem = document->at("filesystem");
  std::set<std::string> features;
  for (const auto& [kind, names] : filesystem.at("features").items()) {
    features.merge(string_set(names));
  }
  EXPECT_EQ(features, word_set(want.at("features")));
  EXPECT_EQ(filesystem.at("block_size"), want.at("block_size"));
  EXPECT_EQ(filesystem.at("needs_recovery"), want.at("needs_recovery"));
  if (is_damaged(name()) || is_in(kNoJournal, name())) {
    return;
  }
  const json& recorded = want["journal"];
  const json& journal = document->at("journal");
  std::set<std::string> journal_features = word_set(recorded.at("features"));
  journal_features.erase("(none)");
  if (journal_features.erase("FEATURE_I5") > 0) {  // dumpe2fs 1.47 has no name for it
    journal_features.insert("fast_commit");
  }
  EXPECT_EQ(string_set(journal.at("features")), journal_features);
  EXPECT_EQ(journal.at("blocks"), recorded.at("blocks"));
  EXPECT_EQ(journal.at("start"), recorded.at("start"));
  EXPECT_EQ(journal.at("sequence"),
            std::stoull(recorded.at("sequence").get<std::string>(), nullptr, 16));
}

using Tag = std::pair<std::uint64_t, std::uint64_t>;  // block of the file system, of the journal

struct Logdump {
  std::vector<Tag> tags;
  std::vector<std::uint64_t> revokes;
};

// Of the live log, sorted.
Logdump parse_logdump(const std::string& text) {
  static const std::regex kTag(
      R"(^\s+FS block (\d+) logged at (?:sequence \d+, )?journal block (\d+).*)");
  static const std::regex kRevoke(R"(.*Revoke FS block (\d+).*)");
  Logdump dump;
  for (const auto& line : lines_of(text.substr(0, text.find("*** Fast Commit Area")))) {
    std::smatch match;
    if (std::regex_match(line, match, kTag)) {
      dump.tags.emplace_back(std::stoull(match[1]), std::stoull(match[2]));
    } else if (std::regex_match(line, match, kRevoke)) {
      dump.revokes.push_back(std::stoull(match[1]));
    }
  }
  std::sort(dump.tags.begin(), dump.tags.end());
  std::sort(dump.revokes.begin(), dump.revokes.end());
  return dump;
}

TEST_P(CorpusLog, ListsWhatLogdumpLists) {
  const auto document = ask("log");
  if (is_damaged(name()) && !is_in(kNoFinding, name())) {
    EXPECT_NE(exit_status(), 0) << "a damaged journal gave no finding";
  }
  if (!document || is_damaged(name()) || is_in(kNoJournal, name()) ||
      is_in(kLogdumpWrong, name())) {
    return;
  }
  Logdump listed;
  for (const auto& transaction : document->at("transactions")) {
    const auto state = transaction.at("state").get<std::string>();
    if (state != "replayable" && state != "incomplete") {
      continue;
    }
    for (const auto& block : transaction.at("blocks")) {
      listed.tags.emplace_back(block.at("fs_block"), block.at("log_block"));
    }
    for (const auto& block : transaction.at("revoked")) {
      listed.revokes.push_back(block);
    }
    if (state == "replayable") {
      EXPECT_GT(transaction.value("commit_time_ns", std::int64_t{0}), 0) << transaction.at("tid");
    }
  }
  std::sort(listed.tags.begin(), listed.tags.end());
  std::sort(listed.revokes.begin(), listed.revokes.end());
  const Logdump want = parse_logdump(read_file(file("logdump.txt")));
  EXPECT_EQ(listed.tags, want.tags);
  EXPECT_EQ(listed.revokes, want.revokes);
}

TEST_P(CorpusStats, AddUpWhatLogLists) {
  const auto stats = ask("stats");
  const auto log = ask("log");
  ASSERT_EQ(stats.has_value(), log.has_value());
  if (!log) {
    return;
  }
  const json& totals = stats->at("totals");
  std::uint64_t transactions = 0, blocks = 0, revokes = 0, fast_commits = 0, fast_blocks = 0;
  std::map<std::string, std::uint64_t> kinds;
  for (const auto& transaction : log->at("transactions")) {
    if (transaction.at("state") != "replayable") {
      continue;
    }
    ++transactions;
    blocks += transaction.at("blocks").size();
    revokes += transaction.at("revoked").size();
    for (const auto& block : transaction.at("blocks")) {
      ++kinds[block.at("kind").get<std::string>()];
    }
  }
  for (const auto& commit : log->at("fast_commits")) {
    if (commit.at("state") == "replayable") {
      ++fast_commits;
      fast_blocks += commit.at("blocks").get<std::uint64_t>();
    }
  }
  EXPECT_EQ(totals.at("transactions"), transactions);
  EXPECT_EQ(totals.at("blocks"), blocks);
  EXPECT_EQ(totals.at("revokes"), revokes);
  EXPECT_EQ(totals.at("fast_commits"), fast_commits);
  EXPECT_EQ(totals.at("fast_commit_blocks"), fast_blocks);
  for (const auto& [kind, count] : stats->at("by_kind").items()) {
    EXPECT_EQ(count, kinds[kind]) << kind;
  }
  EXPECT_EQ(stats->at("findings"), log->at("findings"));
  // What recovery walks is what it takes, unless it walks damaged transactions, too.
  if (totals.at("transactions_left_out") == 0) {
    EXPECT_EQ(stats->at("ring").at("used"), totals.at("blocks_logged"));
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Images, CorpusInspect, testing::ValuesIn(image_names()), test_name);
INSTANTIATE_TEST_SUITE_P(Images, CorpusLog, testing::ValuesIn(image_names()), test_name);
INSTANTIATE_TEST_SUITE_P(Images, CorpusStats, testing::ValuesIn(image_names()), test_name);

}  // namespace
}  // namespace jbdlab::test
