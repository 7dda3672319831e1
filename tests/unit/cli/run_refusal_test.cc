// What `jbdlab run` refuses: the exit status, the whole sentence, and that nothing is left behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/unit/cli/run_support.h"

namespace jbdlab::test {
namespace {

struct Row {
  const char* name;
  Words words;
  int exit_status;
  const char* sentence;  // all of standard error, without "jbdlab: " and the line's end
};

class Refusal : public RunVerb, public testing::WithParamInterface<Row> {};

TEST_P(Refusal, IsOneSentenceAndLeavesNothing) {
  write("ops", "create a\nappend a 4K\nfsync a\n");
  write("bad_operation", "create a\nbogus a\n");
  write("bad_argument", "create a\n\n# but this\nappend a 4X\n");
  write("not_simulated", "create a\nunlink a\n");
  write("flag_not_simulated", "open a creat trunc\n");
  write("victim", std::string(1 << 20, 'v'));
  write("empty", "");
  write("text", std::string(5000, 'x'));
  std::filesystem::create_directory(file("folder"));
  const auto before = folder();
  Words words = GetParam().words;
  for (const char* option : {"--image-out", "--trace-out"}) {
    if (std::find(words.begin(), words.end(), option) == words.end()) {
      words.insert(words.end(), {option, std::string("out") + option});
    }
  }
  const Ran ran = ask(words);
  EXPECT_EQ(ran.exit_status, GetParam().exit_status);
  EXPECT_EQ(ran.err, std::string{"jbdlab: "} + GetParam().sentence + "\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder(), before);
  EXPECT_TRUE(read("victim") == std::string(1 << 20, 'v')) << "it was written to";
}

const auto row_name = [](const auto& row) { return row.param.name; };

INSTANTIATE_TEST_SUITE_P(
    Scripts, Refusal,
    testing::Values(
        Row{"Missing", {"none"}, 3, "none: cannot open: No such file or directory"},
        Row{"Folder", {"folder"}, 3, "folder: expected a file, found a directory"},
        Row{"BadOperation",
            {"bad_operation"},
            2,
            "bad_operation:2: expected an operation, found 'bogus'"},
        Row{"BadArgument",
            {"bad_argument"},
            2,
            "bad_argument:4: append: expected LEN, a number (decimal, 0x or 0 octal; K or M may "
            "follow), found '4X'"},
        Row{"NotSimulated",
            {"not_simulated"},
            2,
            "not_simulated:2: 'unlink a' is not simulated yet"},
        Row{"FlagNotSimulated",
            {"flag_not_simulated"},
            2,
            "flag_not_simulated:1: 'open a creat trunc' is not simulated yet"}),
    row_name);

INSTANTIATE_TEST_SUITE_P(
    Options, Refusal,
    testing::Values(
        Row{"BadSize",
            {"ops", "--size", "1X"},
            2,
            "--size: expected a size such as 4096, 64K or 1G, found \"1X\""},
        Row{"NegativeSize",
            {"ops", "--size=-1"},
            2,
            "--size: expected a size such as 4096, 64K or 1G, found \"-1\""},
        Row{"NoSize",
            {"ops", "--size", "0"},
            2,
            "--size: expected room for a file system, found 0"},
        Row{"SizeBeyondEveryFile",
            {"ops", "--size", "8388608T"},
            2,
            "--size: 9223372036854775808 bytes cannot be had"},
        Row{"SizeTooLargeForANumber",
            {"ops", "--size", "99999999T"},
            2,
            "--size: the size \"99999999T\" is too large"},
        Row{"NoProcessors",
            {"ops", "--cpus", "0"},
            2,
            "--cpus: expected a number from 1 on, found 0"},
        Row{"ManyProcessors", {"ops", "--cpus", "65"}, 2, "--cpus: expected 1 to 64, found 65"},
        Row{"BadProcessors",
            {"ops", "--cpus", "two"},
            2,
            "--cpus: expected a whole number, found \"two\""},
        Row{"SeedTooLarge",
            {"ops", "--seed", "18446744073709551616"},
            2,
            "--seed: expected a whole number, found \"18446744073709551616\""},
        Row{"UnknownDevice",
            {"ops", "--device", "drum"},
            2,
            "--device: there is no 'drum'; there are: ram loop-file"},
        Row{"UnknownKernel", {"ops", "--kernel", "2.4"}, 2, "--kernel: expected 6.18, found '2.4'"},
        Row{"UnknownSetting",
            {"ops", "--set", "fast_commit=on"},
            2,
            "--set: 'fast_commit=on' is not simulated yet"},
        Row{"UnknownMountOption",
            {"ops", "--mount", "noatime,bogus"},
            2,
            "--mount: mount option 'bogus' is not known"},
        Row{"BadValueOfAMountOption",
            {"ops", "--mount", "commit=x"},
            2,
            "--mount: mount option 'commit=x': expected seconds from 0 to 2147483"},
        Row{"MountOptionNotSimulated",
            {"ops", "--mount", "data=journal"},
            2,
            "--mount: mount option 'data=journal' is not simulated"},
        Row{"CrashAtNothing",
            {"ops", "--crash-at", "soon"},
            2,
            "--crash-at: expected op:N, step:N or a time such as 1.5ms, found 'soon'"},
        Row{"CrashAtATimeWithoutAUnit",
            {"ops", "--crash-at", "5"},
            2,
            "--crash-at: expected op:N, step:N or a time such as 1.5ms, found '5'"},
        Row{"CrashBeforeTheFirstStep",
            {"ops", "--crash-at", "step:0"},
            2,
            "--crash-at: expected a number from 1 on, found 0"},
        Row{"CrashAtAnOperationWithoutANumber",
            {"ops", "--crash-at", "op:"},
            2,
            "--crash-at: expected a whole number, found \"\""},
        Row{"CrashBehindTheLastOperation",
            {"ops", "--crash-at", "op:4"},
            2,
            "--crash-at: ops has 3 operations, no number 4"},
        Row{"KeepWithoutACrash", {"ops", "--keep", "durable"}, 2, "--keep: only with --crash-at"},
        Row{"KeepWhat",
            {"ops", "--crash-at", "op:1", "--keep", "some"},
            2,
            "--keep: expected completed, durable or seed:N, found 'some'"},
        Row{"KeepWithABadSeed",
            {"ops", "--crash-at", "op:1", "--keep", "seed:x"},
            2,
            "--keep: expected a whole number, found \"x\""},
        Row{"SizeOfAnImage",
            {"ops", "--image", "text", "--size", "1G"},
            2,
            "--image says what the file system is: no --mkfs or --size beside it"},
        Row{"ImageOverItself",
            {"ops", "--image", "text", "--image-out", "./text"},
            2,
            "--image-out: expected another file than that of --image, found './text'"},
        Row{"TraceOverTheScript",
            {"ops", "--trace-out", "folder/../ops"},
            2,
            "--trace-out: expected another file than that of the script, found 'folder/../ops'"},
        Row{"TwoOutputsInOneFile",
            {"ops", "--image-out", "new", "--trace-out", "./new"},
            2,
            "--trace-out: expected another file than that of --image-out, found './new'"}),
    row_name);

// mke2fs is given one file to write to, and no words that lead to another.
INSTANTIATE_TEST_SUITE_P(
    Mkfs, Refusal,
    testing::Values(
        Row{"Device",
            {"ops", "--mkfs", "/dev/sda"},
            2,
            "--mkfs: expected an option of mke2fs, found '/dev/sda'"},
        Row{"DeviceBehindAnOption",
            {"ops", "--mkfs", "-F victim"},
            2,
            "--mkfs: expected an option of mke2fs, found 'victim'"},
        Row{"DeviceInQuotes",
            {"ops", "--mkfs", "-q 'victim'"},
            2,
            "--mkfs: expected an option of mke2fs, found 'victim'"},
        Row{"DeviceBehindTheEndOfOptions",
            {"ops", "--mkfs", "-- victim"},
            2,
            "--mkfs: option -- of mke2fs is not for use here in '--'"},
        Row{"JournalDevice",
            {"ops", "--mkfs", "-J device=victim"},
            2,
            "--mkfs: expected the journal inside the file system, found -J device=victim"},
        Row{"JournalDeviceInAList",
            {"ops", "--mkfs", "-FJsize=4,device=victim"},
            2,
            "--mkfs: expected the journal inside the file system, found -J size=4,device=victim"},
        Row{"UndoFile",
            {"ops", "--mkfs", "-z victim"},
            2,
            "--mkfs: option -z of mke2fs is not for use here in '-z'"},
        Row{"BadBlocksFile",
            {"ops", "--mkfs", "-l victim"},
            2,
            "--mkfs: option -l of mke2fs is not for use here in '-l'"},
        Row{"OnlyPretending",
            {"ops", "--mkfs", "-Fn"},
            2,
            "--mkfs: option -n of mke2fs is not for use here in '-Fn'"},
        Row{"NumberOfBlocks",
            {"ops", "--mkfs", "-q 1G"},
            2,
            "--mkfs: expected an option of mke2fs, found '1G'"},
        Row{"EmptyWord",
            {"ops", "--mkfs", "''"},
            2,
            "--mkfs: expected an option of mke2fs, found ''"},
        Row{"OpenQuote", {"ops", "--mkfs", "-L 'a"}, 2, "--mkfs: no closing '"},
        Row{"OptionWithoutItsArgument",
            {"ops", "--mkfs", "-q -b"},
            2,
            "--mkfs: option -b needs an argument"},
        Row{"RefusedBlockSize",
            {"ops", "--mkfs", "-b 999"},
            2,
            "--mkfs: mke2fs refuses: invalid block size - 999"},
        Row{"RefusedFeature",
            {"ops", "--mkfs", "-O bogus"},
            2,
            "--mkfs: mke2fs refuses: Invalid filesystem option set: bogus"},
        Row{"RefusedExtendedOption",
            {"ops", "--mkfs", "-E bogus"},
            2,
            "--mkfs: mke2fs refuses: Bad option(s) specified: bogus"},
        Row{"RefusedSize",
            {"ops", "--size", "64K"},
            2,
            "--mkfs: mke2fs refuses: Filesystem too small for a journal ext2fs_write_inode_full: "
            "Illegal inode number while writing reserved inodes"},
        Row{"RefusedHugeSize",
            {"ops", "--size", "4194304T"},
            2,
            "--mkfs: mke2fs refuses: Size of device (0x4000000000000 blocks) of the image too big "
            "to create a filesystem using a blocksize of 4096"},
        Row{"LargeBlocks",
            {"ops", "--mkfs", "-b 65536"},
            2,
            "--mkfs: blocks of more than 4096 bytes are not simulated"},
        Row{"NoRoomForAJournal",
            {"ops", "--size", "1M"},
            2,
            "the file system has no journal: nothing to simulate"},
        Row{"NoJournal",
            {"ops", "--mkfs", "-O ^has_journal"},
            2,
            "the file system has no journal: nothing to simulate"},
        Row{"FastCommits",
            {"ops", "--mkfs", "-O fast_commit"},
            2,
            "feature not simulated: fast_commit"},
        Row{"FeatureNotSimulated",
            {"ops", "--mkfs", "-O inline_data,quota"},
            2,
            "feature not simulated: inline_data, quota"},
        Row{"NoExtents",
            {"ops", "--mkfs", "-O ^extent,^64bit"},
            2,
            "a file system without the feature extent is not simulated"}),
    row_name);

INSTANTIATE_TEST_SUITE_P(
    Images, Refusal,
    testing::Values(
        Row{"Missing",
            {"ops", "--image", "none"},
            3,
            "none: cannot open: No such file or directory"},
        Row{"Folder",
            {"ops", "--image", "folder"},
            3,
            "folder: expected a file system, found a directory"},
        Row{"Empty",
            {"ops", "--image", "empty"},
            3,
            "empty: no ext4 file system: shorter than 2048 bytes"},
        Row{"NoFileSystem",
            {"ops", "--image", "text"},
            3,
            "text: superblock: magic is 0x7878, expected 0xef53 (not an ext4 file system)"}),
    row_name);

INSTANTIATE_TEST_SUITE_P(
    Outputs, Refusal,
    testing::Values(Row{"ImageInNoFolder",
                        {"ops", "--image-out", "none/image"},
                        4,
                        "none/image: cannot be created: No such file or directory"},
                    Row{"TraceInNoFolder",
                        {"ops", "--trace-out", "none/trace"},
                        4,
                        "none/trace: cannot be created: No such file or directory"},
                    Row{"ImageInAFile",
                        {"ops", "--image-out", "text/image"},
                        4,
                        "text/image: cannot be created: Not a directory"},
                    Row{"ImageOverAFolder",
                        {"ops", "--image-out", "folder"},
                        4,
                        "folder: cannot be opened: Is a directory"},
                    Row{"TraceOnAFullDevice",
                        {"ops", "--trace-out", "/dev/full", "--image-out", "/dev/null"},
                        4,
                        "/dev/full: write: No space left on device"},
                    Row{"ImageOnAFullDevice",
                        {"ops", "--image-out", "/dev/full"},
                        4,
                        "/dev/full: write: No space left on device"}),
    row_name);

// Images of real file systems that a simulated kernel cannot go on with.
struct ImageRow {
  const char* name;  // of the image in tests/corpus
  const char* sentence;
};
class RefusedImage : public RunVerb, public testing::WithParamInterface<ImageRow> {};

TEST_P(RefusedImage, IsOneSentence) {
  write("ops", "create a\nfsync a\n");
  unpack_xz(source_dir() / "tests/corpus/images" / GetParam().name / "image.xz", file("image"));
  const std::string before = read("image");
  const auto names = folder();
  const Ran ran = ask({"ops", "--image", "image", "--image-out", "out", "--trace-out", "trace"});
  EXPECT_EQ(ran.exit_status, 3);
  EXPECT_EQ(ran.err, std::string{"jbdlab: image: "} + GetParam().sentence + "\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder(), names);
  EXPECT_TRUE(read("image") == before);
}

constexpr const char* kNeedsRecovery =
    "the journal needs recovery: recover the file system before simulating on it";
INSTANTIATE_TEST_SUITE_P(
    Corpus, RefusedImage,
    testing::Values(
        ImageRow{"full_one", kNeedsRecovery}, ImageRow{"recover_set_empty", kNeedsRecovery},
        ImageRow{"recover_cleared", kNeedsRecovery}, ImageRow{"orphan_list", kNeedsRecovery},
        ImageRow{"bad_jsb_csum",
                 "the checksum of the journal superblock does not match: found c6cf7ffe"},
        ImageRow{"bad_jsb_zero", "a journal superblock begins with c03b3998, found 00000000"},
        ImageRow{"bad_start_range",
                 "the start of the log is outside its ring: expected 1 to 1023, found 16777215"},
        ImageRow{"bad_maxlen",
                 "the journal superblock names more blocks than the journal has: expected at most "
                 "1024, found 1048576"},
        ImageRow{"truncated", "the superblock speaks of 16777216 bytes, the image has 9000448"},
        ImageRow{"ext2_nojournal", "a file system without the feature extent is not simulated"},
        ImageRow{"ext4_nojournal", "the file system has no journal: nothing to simulate"},
        ImageRow{"external", "the journal is on a device of its own: not simulated"},
        ImageRow{"bigalloc", "feature not simulated: bigalloc"},
        ImageRow{"inline_data", "feature not simulated: inline_data"},
        ImageRow{"fc_clean_umount", "feature not simulated: fast_commit"}),
    [](const auto& row) { return row.param.name; });

// ----- outputs -----

TEST_F(RunVerb, WritesThroughDevicesAndLinksInsteadOfReplacingThem) {
  write("ops", "create a\n");
  std::filesystem::create_symlink("elsewhere", file("link"));
  write("elsewhere", "old");
  const Ran ran = ask({"ops", "--image-out", "/dev/null", "--trace-out", "link"});
  EXPECT_EQ(ran.exit_status, 0) << ran.err;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_symlink(file("link")));
  EXPECT_TRUE(read("elsewhere").starts_with("0 phase mount\n")) << read("elsewhere");
  const Ran shown =
      run({"sh", "-c", program() + " run ops --trace-out /dev/stdout | cat"},
          {.timeout = std::chrono::seconds{60}, .folder = dir_.path(), .environment = {}});
  EXPECT_TRUE(shown.out.starts_with("0 phase mount\n")) << shown.out.substr(0, 80);
}

TEST_F(RunVerb, KeepsAnOldOutputWhenTheNewOneFails) {
  write("ops", "create a\nappend a 1M\n");
  ASSERT_EQ(ask({"ops", "--size", "32M", "--image-out", "image"}).err, "");
  write("ops", "append a 1M 10\n");
  for (const char* option : {"--image-out", "--trace-out"}) {
    write("out", "old");
    const Ran ran =
        run({"sh", "-c",
             std::string("trap '' XFSZ; ulimit -f 1; exec ") + program() +
                 " run ops --image image " + option + " out"},
            {.timeout = std::chrono::seconds{60}, .folder = dir_.path(), .environment = {}});
    EXPECT_EQ(ran.exit_status, 4) << option;
    EXPECT_TRUE(ran.err.ends_with(": File too large\n")) << ran.err;
    EXPECT_EQ(ran.out, "") << option;
    EXPECT_EQ(read("out"), "old") << option;
    EXPECT_EQ(folder(), (Words{"image", "ops", "out"})) << option;
  }
}

// ----- scripts that do nothing -----

class EmptyScript : public RunVerb, public testing::WithParamInterface<const char*> {};

TEST_P(EmptyScript, MountsAndUnmounts) {
  write("ops", GetParam());
  const Ran ran = ask({"ops", "--image-out", "image", "--trace-out", "trace"});
  EXPECT_EQ(ran.exit_status, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("ops, 0 threads"), std::string::npos) << ran.out;
  e2fsck_is_content("image");
  EXPECT_NE(read("trace").find(" phase umount\n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Scripts, EmptyScript, testing::Values("", "# nothing\n\n  # at all"));

}  // namespace
}  // namespace jbdlab::test
