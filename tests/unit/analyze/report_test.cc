// What the printers print, and what a report says of how a file system and its journal fit
// together.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>

#include "analyze/findings.h"
#include "analyze/inspect.h"
#include "analyze/log_report.h"
#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "analyze/text_style.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using nlohmann::json;
using test::make_image;
using test::TempDir;

std::string printed(const std::function<void(const Sink&)>& print) {
  std::string text;
  print([&](std::string_view piece) { text += piece; });
  return text;
}

TEST(FindingKinds, HaveIdsOfTheirOwn) {
  std::set<std::string_view> ids;
  std::size_t count = 0;
  for (const auto kinds : {finding::kinds(), jbd2::finding_kinds()}) {
    for (const jbd2::FindingKind* kind : kinds) {
      ids.insert(kind->id);
      ++count;
      EXPECT_EQ(kind->id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
                std::string_view::npos)
          << kind->id;
      EXPECT_FALSE(kind->sentence.ends_with('.')) << kind->id;
      EXPECT_NE(kind->advice, "") << kind->id;
      EXPECT_FALSE(kind->advice.ends_with('.')) << kind->id;
    }
  }
  EXPECT_EQ(ids.size(), count);
  EXPECT_GT(finding::kinds().size(), 10U);
}

// The rows of a table in docs/findings.md, as the program has them.
std::vector<std::string> documented(std::span<const jbd2::FindingKind* const> kinds) {
  std::vector<std::string> rows;
  for (const jbd2::FindingKind* kind : kinds) {
    rows.push_back(fmt::format("| `{}` | {} | {} | {} |", kind->id, to_string(kind->severity),
                               kind->sentence, kind->advice));
  }
  return rows;
}

TEST(FindingKinds, AreListedInTheDocumentation) {
  std::vector<std::string> want = documented(jbd2::finding_kinds());
  for (std::string& row : documented(finding::kinds())) want.push_back(std::move(row));
  std::vector<std::string> have;
  for (std::string& line :
       test::lines_of(test::read_file(test::source_dir() / "docs/findings.md"))) {
    if (line.starts_with("| `")) have.push_back(std::move(line));
  }
  EXPECT_EQ(have, want);
}

TEST(FindingText, SaysOnceWhatToDoAboutEachKind) {
  jbd2::FindingLog findings;
  findings.add(jbd2::finding::kDataChecksum);
  findings.add(jbd2::finding::kDataChecksum);
  findings.add(finding::kFsErrors);
  EXPECT_EQ(
      findings_text(std::move(findings).finish(), Paint{false}),
      "\nFindings\n"
      "  error    a logged block does not match the checksum in its tag (data-checksum)\n"
      "           What to do: recover a copy and run e2fsck -f on it: this block keeps its old "
      "contents\n"
      "  error    a logged block does not match the checksum in its tag (data-checksum)\n"
      "  warning  the kernel found errors in this file system; run e2fsck (fs-errors)\n"
      "           What to do: run e2fsck -f\n");
}

// A journal superblock and a file system's, by the fields that must agree.
struct Agreement {
  const char* name;
  std::uint32_t fs_compat, fs_incompat;
  std::uint32_t journal_incompat, start, stored_fast_commit_blocks, head;
  std::vector<std::string> want;
};

class Agree : public testing::TestWithParam<Agreement> {};

TEST_P(Agree, GivesTheFinding) {
  const Agreement& row = GetParam();
  std::array<std::byte, 1024> raw{};
  set_le<std::uint16_t>(raw, 0x38, 0xEF53);
  set_le<std::uint32_t>(raw, 0x4C, 1);
  set_le<std::uint32_t>(raw, 0x5C, row.fs_compat);
  set_le<std::uint32_t>(raw, 0x60, row.fs_incompat);
  const auto fs = Ext4Superblock::parse(raw);
  ASSERT_TRUE(fs.has_value());
  jbd2::LogSuperblock journal = jbd2::LogSuperblock::create({.block_count = 1280});
  journal.set_features({.incompat = row.journal_incompat});
  journal.set_start(LogBlock{row.start});
  journal.set_stored_fast_commit_blocks(row.stored_fast_commit_blocks);
  journal.set_head(LogBlock{row.head});
  jbd2::FindingLog findings;
  check_agreement(*fs, journal, findings);
  std::vector<std::string> ids;
  for (const auto& finding : std::move(findings).finish()) ids.emplace_back(finding.kind->id);
  EXPECT_EQ(ids, row.want);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Agree,
    testing::Values(
        Agreement{"clean", 0x4, 0, 0, 0, 0, 0, {}}, Agreement{"dirty", 0x4, 4, 0, 7, 0, 0, {}},
        Agreement{"log_without_the_flag", 0x4, 0, 0, 7, 0, 0, {"recovery-flag-clear"}},
        Agreement{"flag_without_a_log", 0x4, 4, 0, 0, 0, 0, {"recovery-flag-only"}},
        Agreement{"fast_commits_on_both", 0x404, 4, 0x20, 7, 256, 0, {}},
        Agreement{
            "fast_commits_of_the_journal_only", 0x4, 4, 0x20, 7, 256, 0, {"fast-commit-left-on"}},
        Agreement{"clean_head_before_the_area_to_be", 0x404, 0, 0, 0, 0, 1023, {}},
        Agreement{
            "clean_head_in_the_area_to_be", 0x404, 0, 0, 0, 0, 1024, {"head-in-fast-commit-area"}},
        Agreement{"the_area_is_as_long_as_it_says",
                  0x404,
                  0,
                  0,
                  0,
                  16,
                  1264,
                  {"head-in-fast-commit-area"}},
        Agreement{"head_before_a_short_area", 0x404, 0, 0, 0, 16, 1263, {}}),
    [](const auto& row) { return row.param.name; });

class Printed : public testing::Test {
 protected:
  void SetUp() override {
    NEED_E2FSPROGS();
    path_ = make_image(dir_.path(), "-t ext4 -b 1024 -J size=1 -L label -O fast_commit", 8192);
    test::debugfs(path_, "journal_open -c -v 3\njournal_write -b 5,6,100,200 " + path_.string() +
                             "\njournal_write -r 300,301,302,200\njournal_close\n");
    subject_ = open_subject(test::open_or_fail(path_), nullptr).value();
  }
  json inspect_json() {
    const auto report = inspect(*subject_);
    return json::parse(printed([&](const Sink& s) { write_inspect_json(report, "image", s); }));
  }
  json log_json(const LogOptions& options = {}) {
    const auto report = read_log_report(*subject_, options);
    return json::parse(printed([&](const Sink& s) { write_log_json(*report, "image", s); }));
  }

  const TempDir dir_;
  std::filesystem::path path_;
  std::optional<Subject> subject_;
};

TEST_F(Printed, InspectHasEveryKeyOfTheContract) {
  const json document = inspect_json();
  EXPECT_EQ(document["schema"], "jbdlab.inspect/1");
  EXPECT_EQ(document["image"], "image");
  for (const char* key :
       {"block_size", "blocks", "inodes", "uuid", "state", "needs_recovery", "features"}) {
    EXPECT_TRUE(document["filesystem"].contains(key)) << key;
  }
  for (const char* key : {"compat", "incompat", "ro_compat"}) {
    EXPECT_TRUE(document["filesystem"]["features"][key].is_array()) << key;
  }
  for (const char* key :
       {"location", "inode", "uuid", "blocks", "first", "sequence", "start", "head", "errno",
        "fast_commit_blocks", "features", "checksum_type", "checksum_ok"}) {
    EXPECT_TRUE(document["journal"].contains(key)) << key;
  }
  EXPECT_EQ(document["filesystem"]["block_size"], 1024);
  EXPECT_EQ(document["filesystem"]["blocks"], 8192);
  EXPECT_EQ(document["filesystem"]["label"], "label");
  EXPECT_EQ(document["filesystem"]["state"], "clean");
  EXPECT_EQ(document["filesystem"]["needs_recovery"], true);
  EXPECT_EQ(document["journal"]["location"], "inode");
  EXPECT_EQ(document["journal"]["inode"], 8);
  EXPECT_EQ(document["journal"]["first"], 1);
  EXPECT_EQ(document["journal"]["start"], 1);
  EXPECT_EQ(document["journal"]["checksum_type"], "crc32c");
  EXPECT_EQ(document["journal"]["checksum_ok"], true);
  EXPECT_EQ(document["journal"]["errno"], 0);
  EXPECT_TRUE(document["compatibility"].is_array());
  EXPECT_TRUE(document["findings"].is_array());
  const auto needs_fast_commit = [](const json& row) { return row["feature"] == "fast_commit"; };
  const auto& rows = document["compatibility"];
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), needs_fast_commit), 1);
}

TEST_F(Printed, LogHasEveryKeyOfTheContract) {
  const json document = log_json();
  EXPECT_EQ(document["schema"], "jbdlab.log/1");
  ASSERT_EQ(document["transactions"].size(), 2U);
  const json& transaction = document["transactions"][0];
  for (const char* key : {"tid", "log_block", "commit_log_block", "commit_time_ns", "state",
                          "checksums", "blocks", "revoked", "changes"}) {
    EXPECT_TRUE(transaction.contains(key)) << key;
  }
  EXPECT_EQ(transaction["state"], "replayable");
  EXPECT_EQ(transaction["log_block"], 1);
  EXPECT_EQ(transaction["commit_log_block"], 6);
  EXPECT_GT(transaction["commit_time_ns"], 0);
  ASSERT_EQ(transaction["blocks"].size(), 4U);
  EXPECT_EQ(transaction["blocks"][2]["fs_block"], 100);
  EXPECT_EQ(transaction["blocks"][2]["log_block"], 4);
  EXPECT_EQ(transaction["blocks"][3]["flags"], json({"same_uuid", "last_tag"}));
  auto revoked = document["transactions"][1]["revoked"].get<std::vector<int>>();
  std::sort(revoked.begin(), revoked.end());
  EXPECT_EQ(revoked, (std::vector<int>{200, 300, 301, 302}));
  EXPECT_EQ(document["fast_commits"], json::array());
}

TEST_F(Printed, LogKeepsWhatItIsAskedFor) {
  const json all = log_json();
  const auto second = all["transactions"][1]["tid"].get<std::uint32_t>();
  const json one = log_json({.all = false, .tids = {{Tid{second}, Tid{second}}}, .inode = {}});
  ASSERT_EQ(one["transactions"].size(), 1U);
  EXPECT_EQ(one["transactions"][0], all["transactions"][1]);
  // Block 100 is inodes 9 to 12 of the table that begins at block 98.
  const json inode = log_json({.all = false, .tids = {}, .inode = Ino{12}});
  ASSERT_EQ(inode["transactions"].size(), 1U);
  ASSERT_EQ(inode["transactions"][0]["blocks"].size(), 1U);
  EXPECT_EQ(inode["transactions"][0]["blocks"][0]["fs_block"], 100);
  EXPECT_EQ(inode["transactions"][0]["blocks"][0]["kind"], "inode_table");
  const json none = log_json({.all = false, .tids = {}, .inode = Ino{13}});
  EXPECT_EQ(none["transactions"], json::array());
  const auto unknown =
      read_log_report(*subject_, {.all = false, .tids = {}, .inode = Ino{9'999'999}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Errc::usage);
}

TEST_F(Printed, TextFitsTheWidthAndHasColoursOnDemandOnly) {
  const auto facts = inspect(*subject_);
  const auto log = read_log_report(*subject_, {});
  for (const bool color : {false, true}) {
    const std::string text = printed([&](const Sink& s) {
      write_inspect_text(facts, "image", {.color = color}, s);
      write_log_text(*log, "image", {.color = color}, s);
    });
    EXPECT_EQ(text.find('\033') != std::string::npos, color);
    if (color) continue;
    for (const std::string& line : test::lines_of(text)) {
      EXPECT_LE(line.size(), kTextWidth) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    EXPECT_NE(text.find("revokes 200 300-302"), std::string::npos) << text;
    EXPECT_NE(text.find("begins at block 1 with transaction"), std::string::npos);
  }
}

TEST(Json, ReplacesWhatIsNotUtf8) {
  jbd2::FindingLog findings;
  findings.add(finding::kFsErrors, {}, "\xff\xfe");
  InspectReport report{};
  report.findings = std::move(findings).finish();
  const std::string text = printed([&](const Sink& s) {
    write_inspect_json(report,
                       "a\xff"
                       "b",
                       s);
  });
  EXPECT_TRUE(json::accept(text)) << text;
  EXPECT_EQ(json::parse(text)["image"],
            "a\xEF\xBF\xBD"
            "b");
}

struct Style {
  const char* name;
  std::string have;
  const char* want;
};
class TextStyle : public testing::TestWithParam<Style> {};
TEST_P(TextStyle, IsWritten) { EXPECT_EQ(GetParam().have, GetParam().want); }

INSTANTIATE_TEST_SUITE_P(
    Rows, TextStyle,
    testing::Values(Style{"bytes", size_text(1023), "1023 bytes"},
                    Style{"kib", size_text(1024), "1 KiB"},
                    Style{"mib", size_text(1536 * 1024), "1.5 MiB"},
                    Style{"all", size_text(~std::uint64_t{0}), "15.9 EiB"},
                    Style{"epoch", time_text(0), "1970-01-01 00:00:00.000000000 UTC"},
                    Style{"time", time_text(1'796'097'835'972'909'813ULL),
                          "2026-12-01 04:03:55.972909813 UTC"},
                    Style{"saturated", time_text(~std::uint64_t{0}), "year 2262 or later"},
                    Style{"name", name_text("a b"), "a b"},
                    Style{"odd_name", name_text("a\n\\\x7f\xc3"), "a\\x0a\\x5c\\x7f\\xc3"},
                    Style{"short_line", fill("a b", 0, 4), "a b"}),
    [](const auto& row) { return row.param.name; });

TEST(TextStyle, FillsLinesToTheWidth) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  const std::string text = fill(words, 10, 6);
  const auto lines = test::lines_of(text);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].size(), 89U);  // 18 words: the next would end behind column 100
  EXPECT_EQ(lines[1], "      " + lines[1].substr(6));
  EXPECT_EQ(lines[1].size(), 100U);
}

TEST(ExportedJournal, IsReadWithoutItsFileSystem) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), "-t ext4 -b 1024 -J size=1", 8192);
  test::debugfs(path, "journal_open\njournal_write -b 5,6 " + path.string() + "\njournal_close\n");
  const auto dump = dir.path() / "journal";
  test::must_run({"debugfs", "-R", "dump <8> " + dump.string(), path.string()});
  auto inside = open_subject(test::open_or_fail(path), nullptr);
  auto outside = open_bare_journal(test::open_or_fail(dump));
  ASSERT_TRUE(inside.has_value() && outside.has_value());
  const auto want = read_log_report(*inside, {});
  const auto have = read_log_report(*outside, {});
  ASSERT_TRUE(want.has_value() && have.has_value());
  ASSERT_EQ(have->contents.transactions.size(), 1U);
  EXPECT_EQ(have->contents.transactions[0].blocks[1].fs_block,
            want->contents.transactions[0].blocks[1].fs_block);
  EXPECT_EQ(to_string(want->kind(0, 0)), "gdt");
  EXPECT_EQ(to_string(have->kind(0, 0)), "unknown");
  EXPECT_FALSE(inspect(*outside).filesystem.has_value());
  EXPECT_EQ(inspect(*outside).journal->blocks, 1024U);
}

TEST(JournalDevice, IsReadAndItsUuidChecked) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto other = make_image(dir.path(), "-O journal_dev -b 1024", 2048);
  std::filesystem::rename(other, dir.path() / "other");
  const auto made = make_image(dir.path(), "-O journal_dev -b 1024", 2048);
  const auto journal = dir.path() / "journal";
  std::filesystem::rename(made, journal);
  const auto path = make_image(dir.path(), "-t ext4 -b 1024 -O ^has_journal", 8192);
  // tune2fs joins the two only if the journal is a block device; so by hand.
  std::string client = test::read_file(path);
  client[1024 + 0x5C] = static_cast<char>(client[1024 + 0x5C] | 4);  // has_journal
  client.replace(1024 + 0xD0, 16, test::read_file(journal).substr(1024 + 0x68, 16));
  test::write_file(path, client);

  auto missing = open_subject(test::open_or_fail(path), nullptr);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(to_string(missing->location.kind), "device");
  ASSERT_FALSE(read_log_report(*missing, {}).has_value());
  auto there = open_subject(test::open_or_fail(path), test::open_or_fail(journal));
  ASSERT_TRUE(there.has_value()) << there.error().what;
  EXPECT_EQ(there->superblock, LogBlock{2});
  EXPECT_TRUE(read_log_report(*there, {}).has_value());
  const auto wrong =
      open_subject(test::open_or_fail(path), test::open_or_fail(dir.path() / "other"));
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().what.find("expected the journal device"), std::string::npos);
}

}  // namespace
}  // namespace jbdlab::analyze
