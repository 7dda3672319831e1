// The program as a shell sees it: exit statuses and sentences.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"

namespace jbdlab::test {
namespace {

using Words = std::vector<std::string>;

class Program : public testing::Test {
 protected:
  Ran ask(Words words) {
    words.insert(words.begin(), program());
    return run(words,
               {.timeout = std::chrono::seconds{60}, .folder = dir_.path(), .environment = {}});
  }
  // An image "image" in the folder; false if mke2fs is not there.
  bool make_image(const char* journal = "size=1") {
    write_file(dir_.path() / "image", "");
    std::filesystem::resize_file(dir_.path() / "image", 8 << 20);
    Words argv{"mke2fs", "-q", "-F", "-t", "ext4", "-b", "1024"};
    if (*journal != '\0') {
      argv.insert(argv.end(), {"-J", journal});
    } else {
      argv.insert(argv.end(), {"-O", "^has_journal"});
    }
    argv.push_back((dir_.path() / "image").string());
    return run(argv).ok();
  }

  const TempDir dir_;
};

struct Row {
  const char* name;
  Words words;
  int exit_status;
  const char* sentence;  // all of standard error, without "jbdlab: " and the line's end
};
class BadUsage : public Program, public testing::WithParamInterface<Row> {};

TEST_P(BadUsage, IsOneSentence) {
  write_file(dir_.path() / "empty", "");
  write_file(dir_.path() / "text", std::string(5000, 'x'));
  write_file(dir_.path() / "short", std::string(100, 'x'));
  const Ran ran = ask(GetParam().words);
  EXPECT_EQ(ran.exit_status, GetParam().exit_status);
  EXPECT_EQ(ran.err, std::string{"jbdlab: "} + GetParam().sentence + "\n");
  EXPECT_EQ(ran.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadUsage,
    testing::Values(
        Row{"unknown_verb", {"inspcet", "x"}, 2, "unknown verb inspcet; did you mean inspect?"},
        Row{"unlike_any_verb", {"xyzzy"}, 2, "unknown verb xyzzy"},
        Row{"unknown_option_before_the_verb",
            {"--verison"},
            2,
            "unknown option --verison; did you mean --version?"},
        Row{"help_of_an_unknown_verb", {"help", "lgo"}, 2, "unknown verb lgo; did you mean log?"},
        Row{"unknown_option",
            {"log", "image", "--jsno"},
            2,
            "log: unknown option --jsno; did you mean --json?"},
        Row{"unknown_option_with_a_value",
            {"inspect", "image", "--ofset=1"},
            2,
            "inspect: unknown option --ofset; did you mean --offset?"},
        Row{"no_abbreviations",
            {"log", "image", "--al"},
            2,
            "log: unknown option --al; did you mean --all?"},
        Row{"no_image",
            {"inspect"},
            2,
            "inspect: an argument is missing; usage: jbdlab inspect IMAGE [options]"},
        Row{"two_images",
            {"inspect", "a", "b"},
            2,
            "inspect: unexpected argument \"b\"; usage: jbdlab inspect IMAGE [options]"},
        Row{"option_without_its_value",
            {"log", "image", "--offset"},
            2,
            "the required argument for option '--offset' is missing"},
        Row{"option_given_twice",
            {"log", "image", "--tid", "1", "--tid", "2"},
            2,
            "option '--tid' cannot be specified more than once"},
        Row{"bad_size",
            {"log", "image", "--offset", "1X"},
            2,
            "--offset: expected a size such as 4096, 64K or 1G, found \"1X\""},
        Row{"bad_volume_size",
            {"inspect", "image", "--volume-size", "-1"},
            2,
            "--volume-size: expected a size such as 4096, 64K or 1G, found \"-1\""},
        Row{"bad_tid",
            {"log", "image", "--tid", "x"},
            2,
            "--tid: expected a transaction id such as 7, or a range 7..12, found \"x\""},
        Row{"bad_inode",
            {"log", "image", "--inode", "0"},
            2,
            "--inode: expected an inode number, found \"0\""},
        Row{"contradiction",
            {"log", "image", "--exported", "--journal", "x"},
            2,
            "--exported and --journal exclude each other"},
        Row{"two_formats_of_the_log",
            {"log", "image", "--json", "--csv"},
            2,
            "--json and --csv exclude each other"},
        Row{"two_formats_of_the_statistics",
            {"stats", "image", "--csv", "--json"},
            2,
            "--json and --csv exclude each other"},
        Row{"missing_file", {"inspect", "none"}, 3, "none: cannot open: No such file or directory"},
        Row{"missing_file_of_log",
            {"log", "none"},
            3,
            "none: cannot open: No such file or directory"},
        Row{"empty_file",
            {"inspect", "empty"},
            3,
            "empty: expected a file system, found an empty file"},
        Row{"a_folder", {"log", "."}, 3, ".: expected a file or a block device, found a directory"},
        Row{"a_character_device",
            {"inspect", "/dev/null"},
            3,
            "/dev/null: expected a file or a block device, found a character device"},
        Row{"not_ext4",
            {"inspect", "text"},
            3,
            "text: not an ext2, ext3 or ext4 file system: expected the magic ef53 at byte 1080, "
            "found "
            "7878"},
        Row{"too_short",
            {"log", "short"},
            3,
            "short: not an ext2, ext3 or ext4 file system: expected a superblock at bytes 1024 to "
            "2047, but it ends at byte 100"},
        Row{"offset_behind_the_end",
            {"log", "text", "--offset", "5000"},
            3,
            "text: the volume would begin at byte 5000, but the file has 5000"},
        Row{"not_a_journal",
            {"log", "text", "--exported"},
            3,
            "text: not a journal: a journal superblock begins with c03b3998, found 78787878"}),
    [](const auto& row) { return row.param.name; });

TEST_F(Program, WithoutAVerbPrintsItsUsageToStandardError) {
  const Ran ran = ask({});
  EXPECT_EQ(ran.exit_status, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(ran.err.starts_with("Usage: jbdlab VERB")) << ran.err;
}

TEST_F(Program, SaysItsVersion) {
  const Ran ran = ask({"--version"});
  EXPECT_EQ(ran.exit_status, 0);
  EXPECT_TRUE(ran.out.starts_with("jbdlab 0.")) << ran.out;
}

class Help : public Program, public testing::WithParamInterface<const char*> {};

TEST_P(Help, IsTheSameEitherWay) {
  const Ran one = ask({"help", GetParam()});
  const Ran other = ask({GetParam(), "--help"});
  EXPECT_EQ(one.exit_status, 0);
  EXPECT_EQ(one.out, other.out);
  EXPECT_TRUE(one.out.starts_with(std::string{"Usage: jbdlab "} + GetParam())) << one.out;
  EXPECT_NE(one.out.find("--json"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Verbs, Help, testing::Values("inspect", "log"));

TEST_F(Program, HelpListsEveryVerb) {
  const Ran ran = ask({"help"});
  EXPECT_EQ(ran.exit_status, 0);
  for (const char* verb : {"inspect", "log", "help VERB", "--version"}) {
    EXPECT_NE(ran.out.find(verb), std::string::npos) << verb;
  }
}

TEST_F(Program, ReadsAnImage) {
  if (!make_image()) GTEST_SKIP() << "mke2fs is needed";
  for (const char* verb : {"inspect", "log"}) {
    const Ran text = ask({verb, "image"});
    EXPECT_EQ(text.exit_status, 0) << text.err;
    EXPECT_EQ(text.err, "");
    EXPECT_EQ(text.out.find('\033'), std::string::npos);
    const Ran json = ask({verb, "image", "--json"});
    EXPECT_EQ(json.exit_status, 0);
    const auto document = nlohmann::json::parse(json.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << json.out;
    EXPECT_EQ(document["schema"], std::string{"jbdlab."} + verb + "/1");
    EXPECT_EQ(document["image"], "image");
  }
}

TEST_F(Program, RefusesTheLogOfAFileSystemWithoutAJournal) {
  if (!make_image("")) GTEST_SKIP() << "mke2fs is needed";
  EXPECT_EQ(ask({"inspect", "image"}).exit_status, 0);
  const Ran ran = ask({"log", "image"});
  EXPECT_EQ(ran.exit_status, 3);
  EXPECT_EQ(ran.err, "jbdlab: image: the file system has no journal (no has_journal feature)\n");
}

TEST_F(Program, FindsAVolumeInsideAnImage) {
  if (!make_image()) GTEST_SKIP() << "mke2fs is needed";
  const std::string volume = read_file(dir_.path() / "image");
  write_file(dir_.path() / "disk", std::string(1 << 20, 'x') + volume + std::string(1000, 'y'));
  const Ran inside = ask({"log", "disk", "--offset", "1M", "--volume-size", "8M"});
  EXPECT_EQ(inside.exit_status, 0) << inside.err;
  const Ran cut = ask({"inspect", "disk", "--offset", "1M", "--volume-size", "7M", "--json"});
  EXPECT_EQ(cut.exit_status, 1);
  EXPECT_EQ(nlohmann::json::parse(cut.out)["findings"][0]["id"], "image-truncated");
}

TEST_F(Program, ReportsATruncatedImage) {
  if (!make_image()) GTEST_SKIP() << "mke2fs is needed";
  std::filesystem::resize_file(dir_.path() / "image", 3000);  // the superblock is there, no more
  const Ran inspect = ask({"inspect", "image"});
  EXPECT_EQ(inspect.exit_status, 1);
  EXPECT_NE(inspect.out.find("image-truncated"), std::string::npos);
  const Ran log = ask({"log", "image"});
  EXPECT_EQ(log.exit_status, 3);
  EXPECT_NE(log.err.find("ends at byte 3000"), std::string::npos) << log.err;
}

TEST_F(Program, RefusesAnImpossibleSuperblock) {
  if (!make_image()) GTEST_SKIP() << "mke2fs is needed";
  std::string bytes = read_file(dir_.path() / "image");
  bytes[1024 + 0x18] = 9;
  write_file(dir_.path() / "image", bytes);
  for (const char* verb : {"inspect", "log"}) {
    const Ran ran = ask({verb, "image"});
    EXPECT_EQ(ran.exit_status, 3);
    EXPECT_EQ(
        ran.err,
        "jbdlab: image: impossible superblock: expected a block size of 1 to 64 KiB (0 to 6), "
        "found 9\n");
  }
}

TEST_F(Program, FailsWithFourWhenItsOutputCannotBeWritten) {
  if (!make_image()) GTEST_SKIP() << "mke2fs is needed";
  const Ran full =
      run({"sh", "-c", program() + " inspect image > /dev/full"},
          {.timeout = std::chrono::seconds{60}, .folder = dir_.path(), .environment = {}});
  EXPECT_EQ(full.exit_status, 4);
  EXPECT_EQ(full.err, "jbdlab: cannot write to standard output: No space left on device\n");
  const Ran gone =
      run({"sh", "-c", program() + " inspect image --json >&-"},
          {.timeout = std::chrono::seconds{60}, .folder = dir_.path(), .environment = {}});
  EXPECT_EQ(gone.exit_status, 4) << gone.err;
}

TEST_F(Program, FailsWithFourWhenItsReaderGoesAway) {
  if (!make_image()) GTEST_SKIP() << "mke2fs is needed";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDERR_FILENO);
    if (::chdir(dir_.path().c_str()) != 0) ::_exit(126);
    const std::string path = program();
    ::execl(path.c_str(), path.c_str(), "inspect", "image", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 4);
}

}  // namespace
}  // namespace jbdlab::test
