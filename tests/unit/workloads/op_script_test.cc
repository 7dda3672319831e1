#include "workloads/op_script.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::workloads {
namespace {

using std::string_view_literals::operator""sv;

OpScript parsed(std::string_view text) {
  Result<OpScript> script = parse_op_script(text, "ops");
  EXPECT_TRUE(script) << script.error().what;
  return script ? std::move(*script) : OpScript("failed");
}

// --- One good line and its canonical form, which is what every argument was read as. ---

struct GoodLine {
  const char* name;
  std::string_view line;
  std::string_view printed;
};
constexpr GoodLine kGoodLines[] = {
    {"create", "create d/a", "create d/a"},
    {"create_mode", "create a 600", "create a 600"},
    {"create_mode_default", "create a 0644", "create a"},
    {"create_mode_zero", "create a 0", "create a 0"},
    {"open", "open a", "open a"},
    {"open_flags_in_any_order", "open a ro direct dsync sync trunc creat",
     "open a creat trunc sync dsync direct ro"},
    {"open_flag_twice", "open a sync sync", "open a sync"},
    {"close", "close a", "close a"},
    {"write", "write a 0 4096", "write a 0 4K"},
    {"write_count", "write a 0x1000 010 7", "write a 4K 8 7"},
    {"write_count_default", "write a 1 2 1", "write a 1 2"},
    {"write_count_zero", "write a 1 2 0", "write a 1 2 0"},
    {"write_mega", "write a 8M 3072K", "write a 8M 3M"},
    {"write_hex_upper", "write a 0XaB 0", "write a 171 0"},
    {"write_hex_kilo", "write a 0x10K 0", "write a 16K 0"},
    {"append", "append a 100", "append a 100"},
    {"append_count", "append a 1K 4096", "append a 1K 4096"},
    {"writemagic", "writemagic a 0 4K", "writemagic a 0 4K"},
    {"read", "read a 0 1M 3", "read a 0 1M 3"},
    {"fsync", "fsync .", "fsync ."},
    {"fdatasync", "fdatasync a", "fdatasync a"},
    {"truncate", "truncate a 0", "truncate a 0"},
    {"fallocate_alloc", "fallocate a 0 1 alloc", "fallocate a 0 1 alloc"},
    {"fallocate_keep", "fallocate a 0 1 keep", "fallocate a 0 1 keep"},
    {"fallocate_punch", "fallocate a 0 1 punch", "fallocate a 0 1 punch"},
    {"fallocate_collapse", "fallocate a 0 1 collapse", "fallocate a 0 1 collapse"},
    {"fallocate_insert", "fallocate a 0 1 insert", "fallocate a 0 1 insert"},
    {"fallocate_zero", "fallocate a 0 1 zero", "fallocate a 0 1 zero"},
    {"unlink", "unlink a", "unlink a"},
    {"unlinkopen", "unlinkopen a", "unlinkopen a"},
    {"rename", "rename a b", "rename a b"},
    {"xchg", "xchg a b", "xchg a b"},
    {"link", "link a b", "link a b"},
    {"symlink_to_anywhere", "symlink /../x a", "symlink /../x a"},
    {"mkdir", "mkdir a 755", "mkdir a"},
    {"mkdir_sticky", "mkdir a 1777", "mkdir a 1777"},
    {"rmdir", "rmdir a", "rmdir a"},
    {"mkfifo", "mkfifo a", "mkfifo a"},
    {"setxattr", "setxattr a user.x 20", "setxattr a user.x 20"},
    {"rmxattr", "rmxattr a user.x", "rmxattr a user.x"},
    {"chmod", "chmod a 644", "chmod a 644"},
    {"chown", "chown a 0x10 4294967295", "chown a 16 4294967295"},
    {"utime", "utime a 1700000000", "utime a 1700000000"},
    {"setflag_journal", "setflag a +j", "setflag a +j"},
    {"setflag_noatime", "setflag a -A", "setflag a -A"},
    {"setflag_sync", "setflag a +S", "setflag a +S"},
    {"setflag_dirsync", "setflag a -D", "setflag a -D"},
    {"readdir", "readdir a", "readdir a"},
    {"stat", "stat a", "stat a"},
    {"sync", "sync", "sync"},
    {"syncfs", "syncfs", "syncfs"},
    {"sleepms", "sleepms 12", "sleepms 12"},
    {"barrier", "barrier", "barrier"},
    {"mark", "mark run-2.b_C", "mark run-2.b_C"},
    {"thread", "t63: fsync a", "t63: fsync a"},
    {"thread_zero_has_no_prefix", "t0: fsync a", "fsync a"},
    {"thread_with_zeros", "t007: mark x", "t7: mark x"},
    {"path_named_like_a_thread", "create t1:", "create t1:"},
    {"comment_after_blank", "fsync a # b", "fsync a"},
    {"comment_after_tab", "fsync\ta\t#b", "fsync a"},
    {"hash_inside_a_path", "fsync a#b", "fsync a#b"},
    {"hash_before_the_comment", "fsync a#b #c", "fsync a#b"},
    {"blanks_around", " \t fsync \t a \t", "fsync a"},
    {"dos_line_end", "fsync a\r\n", "fsync a"},
    {"bytes_that_are_no_ascii", "fsync \xc3\xa9\x01\xff", "fsync \xc3\xa9\x01\xff"},
    {"dots_inside", "fsync a/../b/./c", "fsync a/../b/./c"},
    {"dots_in_names", "fsync ..a/b..", "fsync ..a/b.."},
    {"range_to_the_end", "write a 0x7fffffffffffffff 0", "write a 9223372036854775807 0"},
    {"longest_range", "write a 1 0x3fffffffffffffff 2", "write a 1 4611686018427387903 2"},
};

class GoodLineTest : public testing::TestWithParam<GoodLine> {};

TEST_P(GoodLineTest, IsReadAsWhatItPrints) {
  const OpScript script = parsed(GetParam().line);
  ASSERT_EQ(script.ops().size(), 1u);
  EXPECT_EQ(print_op(script, script.ops()[0]), GetParam().printed);
  EXPECT_EQ(parsed(print_op_script(script)), script);
}
INSTANTIATE_TEST_SUITE_P(Op, GoodLineTest, testing::ValuesIn(kGoodLines),
                         [](const auto& row) { return row.param.name; });

TEST(GoodLines, CoverEveryOperation) {
  for (const OpGrammar& g : kOpGrammar) {
    bool found = false;
    for (const GoodLine& row : kGoodLines)
      found |= row.printed == g.name || row.printed.starts_with(std::string(g.name) + " ");
    EXPECT_TRUE(found) << g.name;
  }
}

// --- Bad input: the whole sentence, and the byte that it speaks of. ---

struct BadText {
  const char* name;
  std::string_view text;
  std::uint64_t offset;
  std::string_view what;
};
constexpr BadText kBadTexts[] = {
    {"unknown_operation", "syncfs\n\n  frob a\n", 10, "ops:3: expected an operation, found 'frob'"},
    {"case_matters", "Fsync a", 0, "ops:1: expected an operation, found 'Fsync'"},
    {"byte_order_mark", "\xef\xbb\xbfsync", 0,
     "ops:1: expected an operation, found '\\xef\\xbb\\xbfsync'"},
    {"thread_64", "t64: sync", 0, "ops:1: expected a thread, t0: to t63:, found 't64:'"},
    {"thread_without_colon", "t1 sync", 0, "ops:1: expected a thread, t0: to t63:, found 't1'"},
    {"thread_without_blank", "t1:sync", 0,
     "ops:1: expected a thread, t0: to t63:, found 't1:sync'"},
    {"thread_overflow", "t18446744073709551617: sync", 0,
     "ops:1: expected a thread, t0: to t63:, found 't18446744073709551617:'"},
    {"thread_alone", "t1: # what?", 4, "ops:1: expected an operation, found the end of the line"},
    {"too_few", "write a 0", 9,
     "ops:1: write: expected LEN (the grammar is: write PATH OFF LEN [COUNT]), found the end of "
     "the "
     "line"},
    {"too_many", "t2: fsync a b", 12,
     "ops:1: fsync: expected the end of the line (the grammar is: fsync PATH), found 'b'"},
    {"no_argument_taken", "sync a", 5,
     "ops:1: sync: expected the end of the line (the grammar is: sync), found 'a'"},
    {"number_small_k", "write a 0 4k", 10,
     "ops:1: write: expected LEN, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'4k'"},
    {"number_negative", "write a -1 4", 8,
     "ops:1: write: expected OFF, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'-1'"},
    {"number_signed", "write a 0 +4", 10,
     "ops:1: write: expected LEN, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'+4'"},
    {"number_bad_octal", "append a 08", 9,
     "ops:1: append: expected LEN, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'08'"},
    {"number_empty_hex", "append a 0x", 9,
     "ops:1: append: expected LEN, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'0x'"},
    {"number_only_suffix", "append a K", 9,
     "ops:1: append: expected LEN, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'K'"},
    {"number_two_suffixes", "append a 1KK", 9,
     "ops:1: append: expected LEN, a number (decimal, 0x or 0 octal; K or M may follow), found "
     "'1KK'"},
    {"number_above_off_t", "truncate a 0x8000000000000000", 11,
     "ops:1: truncate: expected LEN of at most 9223372036854775807, found '0x8000000000000000'"},
    {"number_wraps", "truncate a 18446744073709551616", 11,
     "ops:1: truncate: expected LEN of at most 9223372036854775807, found '18446744073709551616'"},
    {"number_wraps_by_suffix", "truncate a 0x40000000000000K", 11,
     "ops:1: truncate: expected LEN of at most 9223372036854775807, found '0x40000000000000K'"},
    {"count_too_big", "append a 1 2147483648", 11,
     "ops:1: append: expected COUNT of at most 2147483647, found '2147483648'"},
    {"uid_too_big", "chown a 4294967296 0", 8,
     "ops:1: chown: expected UID of at most 4294967295, found '4294967296'"},
    {"range_too_long", "write a 1 0x4000000000000000 2", 0,
     "ops:1: write: expected a range that ends below 2^63, found one of 4611686018427387904 bytes, "
     "2 "
     "times, from 1 on"},
    {"mode_not_octal", "chmod a 689", 8,
     "ops:1: chmod: expected MODE, octal and at most 7777, found '689'"},
    {"mode_too_big", "create a 10000", 9,
     "ops:1: create: expected MODE, octal and at most 7777, found '10000'"},
    {"open_flag", "open a creat excl", 13,
     "ops:1: open: expected creat, trunc, sync, dsync, direct or ro, found 'excl'"},
    {"fallocate_kind", "fallocate a 0 1 trim", 16,
     "ops:1: fallocate: expected KIND, one of alloc, keep, punch, collapse, insert and zero, found "
     "'trim'"},
    {"inode_flag_letter", "setflag a +x", 10,
     "ops:1: setflag: expected + or - and one of j, A, S and D, found '+x'"},
    {"inode_flag_sign", "setflag a j", 10,
     "ops:1: setflag: expected + or - and one of j, A, S and D, found 'j'"},
    {"inode_flag_two", "setflag a +jA", 10,
     "ops:1: setflag: expected + or - and one of j, A, S and D, found '+jA'"},
    {"absolute_path", "unlink /etc/passwd", 7,
     "ops:1: unlink: expected a path relative to the root of the file system, found '/etc/passwd'"},
    {"path_above_root", "rename a b/../../c", 9,
     "ops:1: rename: expected a path below the root of the file system, found 'b/../../c'"},
    {"phase_no_word", "mark a/b", 5,
     "ops:1: mark: expected NAME of letters, digits, '_', '-' or '.', found 'a/b'"},
    {"nul_byte", "fsync a\0b"sv, 7, "ops:1: expected text, found a NUL byte in column 8"},
    {"cr_inside", "sync\rsync\n", 4, "ops:1: expected text, found a CR byte in column 5"},
    {"two_crs", "sync\r\r\n", 4, "ops:1: expected text, found a CR byte in column 5"},
    {"long_field_is_cut", "0123456789012345678901234567890123456789012345678901234567890123456789",
     0,
     "ops:1: expected an operation, found "
     "'012345678901234567890123456789012345678901234567890123456789...'"},
};

class BadTextTest : public testing::TestWithParam<BadText> {};

TEST_P(BadTextTest, IsRefusedWithItsPlaceAndReason) {
  const Result<OpScript> script = parse_op_script(GetParam().text, "ops");
  ASSERT_FALSE(script);
  EXPECT_EQ(script.error().what, GetParam().what);
  EXPECT_EQ(script.error().offset, GetParam().offset);
  EXPECT_EQ(script.error().code, Errc::usage);
}
INSTANTIATE_TEST_SUITE_P(Op, BadTextTest, testing::ValuesIn(kBadTexts),
                         [](const auto& row) { return row.param.name; });

TEST(OpScript, TakesLinesOf8000BytesAndNoLongerOnes) {
  const std::string line = "fsync " + std::string(kLineBytesMax - 6, 'a');
  EXPECT_EQ(parsed(line + "\r\n" + line).ops().size(), 2u);
  const Result<OpScript> longer = parse_op_script("sync\n" + line + "a\n", "ops");
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().what, "ops:2: expected a line of at most 8000 bytes, found one of 8001");
  EXPECT_EQ(longer.error().offset, 5u);
}

// --- Threads, phases, texts. ---

struct ThreadCase {
  const char* name;
  std::string_view text;
  std::vector<std::uint8_t> threads;
  std::vector<std::vector<std::uint32_t>> ops;  // by thread, as lines
};
const ThreadCase kThreadCases[] = {
    {"nothing", "", {}, {}},
    {"only_comments", "# a\n\n   # b\n", {}, {}},
    {"one", "sync\nsync\n", {0}, {{1, 2}}},
    {"mark_without_prefix_makes_thread_0", "mark a\nt1: sync\n", {0, 1}, {{1}, {1, 2}}},
    {"barrier_with_prefix_makes_no_thread_0", "t1: sync\nt2: barrier\n", {1, 2}, {{1, 2}, {2}}},
    {"meetings_before_a_thread_begins_are_its_own",
     "t5: sync\nbarrier\nt63: syncfs\n",
     {0, 5, 63},
     {{2}, {1, 2}, {2, 3}}},
};
class ThreadsTest : public testing::TestWithParam<ThreadCase> {};
TEST_P(ThreadsTest, ExistWhenALineNamesThem) {
  const OpScript script = parsed(GetParam().text);
  EXPECT_EQ(script.threads(), GetParam().threads);
  std::vector<std::vector<std::uint32_t>> lines = script.ops_by_thread();
  for (auto& list : lines)
    for (std::uint32_t& index : list) index = script.ops()[index].line;
  EXPECT_EQ(lines, GetParam().ops);
}
INSTANTIATE_TEST_SUITE_P(Op, ThreadsTest, testing::ValuesIn(kThreadCases),
                         [](const auto& row) { return row.param.name; });

TEST(OpScript, ListsEachPhaseOnce) {
  const OpScript script = parsed("mark setup\nmark run\nmark a\nmark setup\n");
  std::vector<std::string_view> names;
  for (const TextId id : script.phases()) names.push_back(script.text(id));
  EXPECT_EQ(names, (std::vector<std::string_view>{"run", "setup", "a"}));
}

TEST(OpScript, KeepsEachTextOnceWithItsSeed) {
  const OpScript script = parsed("rename a b\nrename b a\nsetxattr a b 1\n");
  const auto ops = script.ops();
  EXPECT_EQ(ops[0].path, ops[1].other);
  EXPECT_EQ(ops[0].other, ops[1].path);
  EXPECT_EQ(ops[2].path, ops[0].path);
  EXPECT_EQ(script.path_seed(ops[0]), 0xe40c292cu);   // FNV-1a of "a"
  EXPECT_EQ(script.other_seed(ops[2]), 0xe70c2de5u);  // of "b"
}

TEST(OpScript, KeepsItsTextsWhenItGrowsAndMoves) {
  OpScript script("made");
  std::vector<TextId> ids;
  for (int i = 0; i < 10'000; ++i)
    ids.push_back(
        script.intern(std::string(static_cast<std::size_t>(i % 40), 'x') + std::to_string(i)));
  const TextId big = script.intern(std::string(100'000, 'y'));
  const OpScript moved = std::move(script);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(moved.text(ids[static_cast<std::size_t>(i)]),
              std::string(static_cast<std::size_t>(i % 40), 'x') + std::to_string(i));
  EXPECT_EQ(moved.text(big).size(), 100'000u);
}

TEST(OpScript, BuiltByAProgramIsWhatItsTextSays) {
  OpScript script("made");
  const TextId a = script.intern("a");
  script.add({.kind = OpKind::create, .path = a, .mode = kCreateModeDefault});
  script.add({.kind = OpKind::append, .thread = 3, .path = a, .count = 2, .length = 4096});
  script.add({.kind = OpKind::mark, .line = 5, .other = script.intern("run")});
  EXPECT_EQ(print_op_script(script), "create a\nt3: append a 4K 2\n\n\nmark run\n");
  EXPECT_EQ(parsed(print_op_script(script)), script);
}

TEST(OpScript, DiffersWhereAnythingDiffers) {
  const OpScript script = parsed("t1: write a 0 4K\n");
  for (const char* other :
       {"", "t1: write a 0 4K\nsync\n", "t2: write a 0 4K\n", "t1: write b 0 4K\n",
        "t1: write a 1 4K\n", "t1: write a 0 4K 2\n", "t1: read a 0 4K\n", "\nt1: write a 0 4K\n"})
    EXPECT_NE(parsed(other), script) << other;
}

// --- Scripts that a real kernel replayed (groundtruth/runs). ---

struct RecordedScript {
  const char* name;
  std::size_t ops;  // meetings too
  std::size_t threads;
  std::string_view first, last;
};
constexpr RecordedScript kRecordedScripts[] = {
    {"cross_rename", 189, 1, "mark setup", "fsync a/x"},
    {"direct_io", 120, 1, "mark setup", "write f 1816K 8K"},
    {"falloc_collapse_insert", 86, 1, "mark setup", "fsync f"},
    {"fsync_idle", 63, 1, "mark setup", "fsync f"},
    {"lockstep_4t", 611, 4, "mark setup", "barrier"},
    {"odsync", 108, 1, "mark setup", "append f 4K"},
    {"stream_4t", 13, 4, "mark setup", "syncfs"},
    {"xattr_inode", 303, 1, "mark setup", "fsync f58"},
};
class RecordedScriptTest : public testing::TestWithParam<RecordedScript> {};
TEST_P(RecordedScriptTest, IsReadWholeAndPrintedBack) {
  const std::filesystem::path path = std::filesystem::path(JBDLAB_SOURCE_DIR) / "tests/golden/ops" /
                                     (std::string(GetParam().name) + ".ops");
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const OpScript script = parsed(text);
  ASSERT_EQ(script.ops().size(), GetParam().ops);
  EXPECT_EQ(script.threads().size(), GetParam().threads);
  EXPECT_EQ(print_op(script, script.ops().front()), GetParam().first);
  EXPECT_EQ(print_op(script, script.ops().back()), GetParam().last);
  EXPECT_EQ(parsed(print_op_script(script)), script);
}
INSTANTIATE_TEST_SUITE_P(Op, RecordedScriptTest, testing::ValuesIn(kRecordedScripts),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace jbdlab::workloads
