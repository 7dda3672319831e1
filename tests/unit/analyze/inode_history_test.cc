// Versions of an inode in a log, on inodes written down here and on a journal that debugfs wrote.
#include "analyze/inode_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyze/log_csv.h"
#include "analyze/log_report.h"
#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using nlohmann::json;
using test::TempDir;
using Names = std::vector<std::string_view>;

constexpr std::int64_t kSecond = 1'000'000'000;

// An inode of 256 bytes with a value of its own in every field.
std::vector<std::byte> large_inode() {
  std::vector<std::byte> raw(256);
  const MutableByteSpan out{raw};
  set_le<std::uint16_t>(out, 0x00, 0x81A4);
  set_le<std::uint16_t>(out, 0x02, 1000);
  set_le<std::uint32_t>(out, 0x04, 5000);
  set_le<std::uint32_t>(out, 0x08, 100);
  set_le<std::uint32_t>(out, 0x0C, 200);
  set_le<std::uint32_t>(out, 0x10, 300);
  set_le<std::uint32_t>(out, 0x14, 400);
  set_le<std::uint16_t>(out, 0x18, 2000);
  set_le<std::uint16_t>(out, 0x1A, 2);
  set_le<std::uint32_t>(out, 0x1C, 16);
  set_le<std::uint32_t>(out, 0x20, 0x80000);
  set_le<std::uint32_t>(out, 0x64, 77);
  set_le<std::uint32_t>(out, 0x6C, 1);
  set_le<std::uint16_t>(out, 0x74, 1);
  set_le<std::uint16_t>(out, 0x78, 1);
  set_le<std::uint16_t>(out, 0x7A, 2);
  set_le<std::uint16_t>(out, 0x80, 32);
  set_le<std::uint32_t>(out, 0x84, 5 << 2);      // ctime: 5 ns
  set_le<std::uint32_t>(out, 0x88, 1);           // mtime: 2^32 s later
  set_le<std::uint32_t>(out, 0x8C, 7 << 2 | 2);  // atime: both
  set_le<std::uint32_t>(out, 0x90, 500);
  set_le<std::uint32_t>(out, 0x94, 9 << 2);
  return raw;
}

TEST(InodeFacts, AreAllFieldsOfALargeInode) {
  const InodeFacts facts = InodeFacts::parse(large_inode(), 4096).value();
  const InodeFacts want{.mode = 0x81A4,
                        .uid = 65536 + 1000,
                        .gid = 2 * 65536 + 2000,
                        .size = (std::uint64_t{1} << 32) + 5000,
                        .links = 2,
                        .sectors = (std::uint64_t{1} << 32) + 16,
                        .flags = 0x80000,
                        .generation = 77,
                        .atime_ns = ((std::int64_t{2} << 32) + 100) * kSecond + 7,
                        .ctime_ns = 200 * kSecond + 5,
                        .mtime_ns = ((std::int64_t{1} << 32) + 300) * kSecond,
                        .crtime_ns = 500 * kSecond + 9,
                        .dtime = 400};
  EXPECT_EQ(facts, want) << testing::PrintToString(changed_fields(want, facts));
}

TEST(InodeFacts, OfASmallInodeHaveNoMoreThanItHolds) {
  const std::vector<std::byte> raw = large_inode();
  const InodeFacts facts = InodeFacts::parse(ByteSpan{raw}.first(128), 4096).value();
  EXPECT_EQ(facts.ctime_ns, 200 * kSecond);
  EXPECT_EQ(facts.crtime_ns, std::nullopt);
  EXPECT_FALSE(InodeFacts::parse(ByteSpan{raw}.first(127), 4096).has_value());
}

TEST(InodeFacts, EndWhereTheInodeSaysThatItEnds) {
  std::vector<std::byte> raw = large_inode();
  set_le<std::uint16_t>(raw, 0x80, 8);  // with the extra word of ctime, and without that of mtime
  const InodeFacts facts = InodeFacts::parse(raw, 4096).value();
  EXPECT_EQ(facts.ctime_ns, 200 * kSecond + 5);
  EXPECT_EQ(facts.mtime_ns, 300 * kSecond);
  EXPECT_EQ(facts.crtime_ns, std::nullopt);
  set_le<std::uint16_t>(raw, 0x80, 0xFFFF);  // further than it can
  EXPECT_EQ(InodeFacts::parse(raw, 4096)->crtime_ns, 500 * kSecond + 9);
}

TEST(InodeFacts, CountAHugeFileInBlocks) {
  std::vector<std::byte> raw = large_inode();
  set_le<std::uint16_t>(raw, 0x74, 0);
  set_le<std::uint32_t>(raw, 0x20, 0xC0000);
  EXPECT_EQ(InodeFacts::parse(raw, 4096)->sectors, 128U);
  EXPECT_EQ(InodeFacts::parse(raw, 1024)->sectors, 32U);
}

TEST(InodeFacts, KnowTimesBefore1970AndSaturateBehind2262) {
  std::vector<std::byte> raw = large_inode();
  set_le<std::uint32_t>(raw, 0x08, 0xFFFF'FFFF);
  set_le<std::uint32_t>(raw, 0x8C, 0);
  EXPECT_EQ(InodeFacts::parse(raw, 4096)->atime_ns, -kSecond);
  set_le<std::uint32_t>(raw, 0x08, 0x7FFF'FFFF);
  set_le<std::uint32_t>(raw, 0x8C, 3);
  EXPECT_EQ(InodeFacts::parse(raw, 4096)->atime_ns, std::numeric_limits<std::int64_t>::max());
}

TEST(ChangedFields, NamesThemInOrder) {
  const InodeFacts before = InodeFacts::parse(large_inode(), 4096).value();
  InodeFacts after = before;
  EXPECT_EQ(changed_fields(before, after), Names{});
  after.crtime_ns.reset();
  after.size = 6000;
  after.links = 1;
  EXPECT_EQ(changed_fields(before, after), (Names{"size", "links", "crtime"}));
}

std::string printed(const std::function<void(const Sink&)>& print) {
  std::string text;
  print([&](std::string_view piece) { text += piece; });
  return text;
}

// Block 100 is inodes 9 to 12 of the table that begins at block 98. debugfs logs, one after the
// other, what the table holds when the root is theirs, and what another image has in its place.
class History : public testing::Test {
 protected:
  void SetUp() override {
    NEED_E2FSPROGS();
    path_ = test::make_image(dir_.path(), "-t ext4 -b 1024 -J size=1", 8192);
    const std::string plain = test::read_file(path_);
    const std::string before = (dir_.path() / "before").string();
    const std::string after = (dir_.path() / "after").string();
    test::write_file(before, plain.substr(100 * 1024, 1024));
    std::string changed = plain.substr(100 * 1024, 1024);
    changed[2 * 256 + 0x04] = static_cast<char>(0x39);  // size of inode 11
    changed[2 * 256 + 0x1A] = static_cast<char>(7);     // links
    test::write_file(after, changed);
    test::debugfs(path_, "journal_open -c -v 3\njournal_write -b 100 " + before +
                             "\njournal_write -b 100 " + after + "\njournal_write -b 100 " + after +
                             "\njournal_close\n");
    auto subject = open_subject(test::open_or_fail(path_), nullptr);
    ASSERT_TRUE(subject.has_value());
    report_ = read_log_report(*subject, {.all = false, .tids = {}, .inode = Ino{11}}).value();
  }

  const TempDir dir_;
  std::filesystem::path path_;
  std::optional<LogReport> report_;
};

TEST_F(History, HasAVersionForEachCopyInLogOrder) {
  ASSERT_TRUE(report_->history.has_value());
  const InodeHistory& history = *report_->history;
  EXPECT_EQ(history.ino, Ino{11});
  ASSERT_EQ(history.versions.size(), 3U);
  EXPECT_EQ(history.versions[0].changed, Names{});
  EXPECT_EQ(history.versions[1].changed, (Names{"size", "links"}));
  EXPECT_EQ(history.versions[2].changed, Names{});
  EXPECT_EQ(history.versions[0].facts.mode, 040700);  // lost+found
  EXPECT_EQ(history.versions[0].facts.size, 12'288U);
  EXPECT_EQ(history.versions[1].facts.size, 12'288U + 0x39);
  EXPECT_EQ(history.versions[1].facts.links, 7);
  EXPECT_EQ(history.versions[1].tid, history.versions[0].tid.next());
  EXPECT_EQ(history.on_disk, history.versions[0].facts);
}

TEST_F(History, IsPrintedInEveryFormat) {
  const json document =
      json::parse(printed([&](const Sink& s) { write_log_json(*report_, "image", s); }));
  EXPECT_EQ(document.at("inode"), 11);
  EXPECT_EQ(document.at("on_disk").at("size"), 12'288);
  ASSERT_EQ(document.at("history").size(), 3U);
  EXPECT_EQ(document["history"][1].at("changed"), json({"size", "links"}));
  EXPECT_EQ(document["history"][1].at("inode").at("links"), 7);
  EXPECT_EQ(document["history"][1].at("source"), "transaction");

  const std::string csv = printed([&](const Sink& s) { write_log_csv(*report_, s); });
  const auto rows = test::lines_of(csv);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_TRUE(rows[2].ends_with(",size links")) << rows[2];
  EXPECT_TRUE(rows[4].starts_with("disk,,,,,,40700,0,0,12288,2,")) << rows[4];

  const std::string text =
      printed([&](const Sink& s) { write_log_text(*report_, "image", {.color = false}, s); });
  EXPECT_NE(text.find("  size links\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  1 more version is the same as the one before.\n"), std::string::npos);
}

TEST(LogCsv, HasARowForEachBlockRevokeAndTag) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = test::make_image(dir.path(), "-t ext4 -b 1024 -J size=1", 8192);
  test::debugfs(path, "journal_open -c -v 3\njournal_write -b 5,100 " + path.string() +
                          "\njournal_write -r 300\njournal_close\n");
  auto subject = open_subject(test::open_or_fail(path), nullptr);
  auto report = read_log_report(*subject, {}).value();
  jbd2::FastCommitEntry creat;
  creat.tag = jbd2::FcTag::creat;
  creat.log_block = LogBlock{900};
  creat.ino = Ino{12};
  creat.parent = Ino{2};
  creat.name = "a\",b";
  jbd2::FastCommitEntry range;
  range.tag = jbd2::FcTag::add_range;
  range.log_block = LogBlock{900};
  range.ino = Ino{12};
  range.lblk = LogicalBlock{3};
  range.pblk = FsBlock{500};
  range.len = 2;
  range.unwritten = true;
  jbd2::LogFastCommit fast;
  fast.tid = Tid{9};
  fast.state = jbd2::LogState::replayable;
  fast.crc_ok = true;
  fast.tags = {creat, range};
  report.contents.fast_commits = {fast};
  auto rows = test::lines_of(printed([&](const Sink& s) { write_log_csv(report, s); }));
  ASSERT_EQ(rows.size(), 6U);
  const auto columns = [](const std::string& row) {
    return std::count(row.begin(), row.end(), ',');
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(columns(rows[i]), i == 4 ? 14 : 13) << rows[i];  // a comma in the name
  }
  EXPECT_TRUE(rows[2].ends_with(",3,100,inode_table,good,,,,,,")) << rows[2];
  EXPECT_TRUE(rows[3].starts_with("revoke,")) << rows[3];
  EXPECT_TRUE(rows[3].ends_with(",300,,,,,,,,")) << rows[3];
  EXPECT_EQ(rows[4], "creat,9,replayable,,900,,,good,12,2,\"a\"\",b\",,,");
  EXPECT_EQ(rows[5], "add_range,9,replayable,,900,500,,good,12,,,3,2,1");
}

}  // namespace
}  // namespace jbdlab::analyze
