// What a script sees when the simulated disk is full, and when an operation of it fails.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/unit/cli/run_support.h"

namespace jbdlab::test {
namespace {

using Json = nlohmann::ordered_json;

struct Full {
  const char* name;
  std::string script;
  Words options;
  const char* sentence;  // a regular expression for all of standard error
};
class FullDisk : public RunVerb, public testing::WithParamInterface<Full> {};

TEST_P(FullDisk, EndsTheScriptAndLeavesASoundFileSystem) {
  const auto& [name, script, options, sentence] = GetParam();
  write("ops", script);
  Words words{"ops", "--json", "--image-out", "image"};
  words.insert(words.end(), options.begin(), options.end());
  const Ran ran = ask(words);
  EXPECT_EQ(ran.exit_status, 1);
  EXPECT_TRUE(std::regex_match(ran.err, std::regex(std::string("jbdlab: ") + sentence + "\n")))
      << ran.err;
  const Json report = Json::parse(ran.out);
  const std::string line = std::to_string(report["failure"]["line"].get<int>());
  EXPECT_NE(ran.err.find(":" + line + ": "), std::string::npos) << report["failure"];
  EXPECT_GT(report["phases"]["run"]["ops_total"], 0);
  EXPECT_GT(report["phases"]["umount"]["elapsed_ns"], 0) << "it was not unmounted";
  e2fsck_is_content("image");
}

const std::string kLong(240, 'n');

INSTANTIATE_TEST_SUITE_P(
    Runs, FullDisk,
    testing::Values(Full{"OfData",
                         "create f\nappend f 1M 100\nfsync f\n",
                         {"--size", "16M"},
                         "ops:2: append f 1M 100: ENOSPC: no space left on device"},
                    Full{"OfDataBehindAHole",
                         "create f\nappend f 1M 2\nwrite f 1024M 1M 30\n",
                         {"--size", "16M"},
                         "ops:3: write f 1024M 1M 30: ENOSPC: no space left on device"},
                    Full{"OfSmallBlocks",
                         "create f\nappend f 3K 10000\n",
                         {"--size", "8M", "--mkfs", "-b 1024"},
                         "ops:2: append f 3K 10000: ENOSPC: no space left on device"},
                    Full{"OfInodes",
                         numbered("create f", 5000),
                         {"--size", "8M"},
                         "ops:2038: create f2037: ENOSPC: no space left on device"},
                    Full{"OfInodesOfDirectories",
                         numbered("mkdir d", 5000),
                         {"--size", "16M"},
                         "ops:4086: mkdir d4085: ENOSPC: no space left on device"},
                    // No block for the directory that must grow: the new inode is given back.
                    Full{"OfNames",
                         numbered("create " + kLong, 9000),
                         {"--size", "8M", "--mkfs", "-N 20000"},
                         "ops:[0-9]+: create n+[0-9]+: ENOSPC: no space left on device"},
                    Full{"OfNamesInALine",
                         numbered("create " + kLong, 9000),
                         {"--size", "8M", "--mkfs", "-N 20000 -O ^dir_index"},
                         "ops:[0-9]+: create n+[0-9]+: ENOSPC: no space left on device"},
                    Full{"OfNamesOfDirectories",
                         numbered("mkdir d", 9000),
                         {"--size", "8M", "--mkfs", "-N 20000"},
                         "ops:[0-9]+: mkdir d[0-9]+: ENOSPC: no space left on device"},
                    Full{"OfNamesOfDirectoriesInSmallBlocks",
                         numbered("mkdir d", 9000),
                         {"--size", "8M", "--mkfs", "-N 20000 -b 1024 -O ^metadata_csum"},
                         "ops:[0-9]+: mkdir d[0-9]+: ENOSPC: no space left on device"},
                    Full{"OfLongNamesOfDirectories",
                         numbered("mkdir " + kLong, 9000),
                         {"--size", "8M", "--mkfs", "-N 20000"},
                         "ops:[0-9]+: mkdir n+[0-9]+: ENOSPC: no space left on device"}),
    [](const auto& row) { return row.param.name; });

// The last block goes to the new directory, and the entry for it finds none: both are given back.
TEST_F(RunVerb, GivesBackTheBlockOfADirectoryThatFindsNoRoomForItsName) {
  // Fills the disk up to `left` blocks, then makes directories whose names fill the root's blocks.
  int dropped_with_block = 0;
  const Words disk{"--size", "16M", "--mkfs", "-b 4096"};
  for (int names = 6; names < 24; ++names) {
    std::string script = numbered("create " + kLong, names) + "create f\n";
    // All but one block, found by trying: the write that does not fit ends nothing here.
    write("probe", script + "append f 4K 4000\n");
    const Ran full = ask({"probe", "--json", disk[0], disk[1], disk[2], disk[3]});
    ASSERT_EQ(full.exit_status, 1) << full.err;
    const auto sectors = Json::parse(full.out)["phases"];
    std::uint64_t data = 0;
    for (const auto& [name, phase] : sectors.items()) {
      data += phase["sectors"]["data"].get<std::uint64_t>();
    }
    ASSERT_GT(data, 80U);
    write("ops", script + "append f 4K " + std::to_string(data / 8 - 1) + "\nsync\nmkdir " +
                     std::string(250, 'd') + "\n");
    const Ran ran = ask({"ops", "--image-out", "image", disk[0], disk[1], disk[2], disk[3]});
    e2fsck_is_content("image");
    if (ran.exit_status == 1) ++dropped_with_block;
  }
  EXPECT_GT(dropped_with_block, 0);
}

// ----- operations that fail -----

struct Failure {
  const char* name;
  std::string script;
  std::string sentence;  // of standard error, without "jbdlab: " and the line's end
};
class FailingOperation : public RunVerb, public testing::WithParamInterface<Failure> {};

TEST_P(FailingOperation, IsNamedWithItsLine) {
  write("ops", GetParam().script);
  const Ran ran = ask({"ops", "--size", "64M", "--image-out", "image"});
  EXPECT_EQ(ran.exit_status, 1);
  EXPECT_EQ(ran.err, "jbdlab: " + GetParam().sentence + "\n");
  EXPECT_NE(ran.out.find("total time"), std::string::npos) << "no report";
  e2fsck_is_content("image");
}

const std::string kNameTooLong(256, 'n');

INSTANTIATE_TEST_SUITE_P(
    Operations, FailingOperation,
    testing::Values(
        Failure{"CreateTwice", "create a\n# again\ncreate a\n",
                "ops:3: create a: EEXIST: file exists"},
        Failure{"MkdirTwice", "mkdir a\nmkdir a\n", "ops:2: mkdir a: EEXIST: file exists"},
        Failure{"MkdirOfTheRoot", "mkdir .\n", "ops:1: mkdir .: EEXIST: file exists"},
        Failure{"OpenMissing", "open a\n", "ops:1: open a: ENOENT: no such file or directory"},
        Failure{"AppendMissing", "append a 4096\n",
                "ops:1: append a 4K: ENOENT: no such file or directory"},
        Failure{"FsyncMissing", "fsync a\n", "ops:1: fsync a: ENOENT: no such file or directory"},
        Failure{"ChmodMissing", "chmod a 600\n",
                "ops:1: chmod a 600: ENOENT: no such file or directory"},
        Failure{"FolderMissing", "create a/b\n",
                "ops:1: create a/b: ENOENT: no such file or directory"},
        Failure{"PathThroughAFile", "create a\nmkdir a/b\n",
                "ops:2: mkdir a/b: ENOTDIR: not a directory"},
        Failure{"FileWithASlash", "create a/\n", "ops:1: create a/: EISDIR: is a directory"},
        Failure{"OpenFileWithASlash", "create a\nopen a/ ro\n",
                "ops:2: open a/ ro: ENOTDIR: not a directory"},
        Failure{"WriteToAFolder", "mkdir a\nwrite a 0 1\n",
                "ops:2: write a 0 1: EBADF: bad file descriptor"},
        Failure{"WriteReadOnly", "create a\nopen a ro\nappend a 1\n",
                "ops:3: append a 1: EBADF: bad file descriptor"},
        Failure{"NameOf256Bytes", "create " + kNameTooLong + "\n",
                "ops:1: create " + kNameTooLong + ": ENAMETOOLONG: file name too long"},
        Failure{"FolderNameOf256Bytes", "mkdir " + kNameTooLong + "/a\n",
                "ops:1: mkdir " + kNameTooLong + "/a: ENAMETOOLONG: file name too long"},
        Failure{"BeyondTheLargestFile", "create a\nwrite a 17592186044416 1\n",
                "ops:2: write a 16777216M 1: EFBIG: file too large"},
        Failure{"InAnotherThread",
                "t5: create a\nt5: sleepms 1\nt6: create b\nt6: sleepms 2\nt6: append c 4K\n"
                "barrier\nt5: create d\n",
                "ops:5: t6: append c 4K: ENOENT: no such file or directory"}),
    [](const auto& row) { return row.param.name; });

TEST_F(RunVerb, RunsNothingBehindTheOperationThatFailed) {
  write("ops", "create a\nmkdir a\ncreate b\nmark later\ncreate c\n");
  const Ran ran = ask({"ops", "--json", "--image-out", "image", "--size", "64M"});
  EXPECT_EQ(ran.exit_status, 1);
  const Json report = Json::parse(ran.out);
  EXPECT_EQ(report["phases"]["run"]["ops"]["create"], 1);
  EXPECT_FALSE(report["phases"].contains("later"));
  EXPECT_EQ(report["failure"]["line"], 2);
  EXPECT_EQ(report["failure"]["operation"], "mkdir a");
  const std::string names = must_run({"debugfs", "-R", "ls -p", file("image").string()});
  EXPECT_NE(names.find("/a/"), std::string::npos);
  EXPECT_EQ(names.find("/b/"), std::string::npos);
}

}  // namespace
}  // namespace jbdlab::test
