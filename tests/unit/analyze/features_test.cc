#include "analyze/features.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "analyze/image.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using test::make_image;
using test::TempDir;

std::set<std::string> all_names(const FsFeatures& features) {
  const FeatureNames names = feature_names(features);
  std::set<std::string> all;
  for (const auto* word : {&names.compat, &names.incompat, &names.ro_compat}) {
    all.insert(word->begin(), word->end());
  }
  return all;
}

// What dumpe2fs prints behind "Filesystem features:".
std::set<std::string> names_of_dumpe2fs(const std::filesystem::path& image) {
  const std::string text = test::must_run({"dumpe2fs", "-h", image.string()});
  for (const std::string& line : test::lines_of(text)) {
    if (!line.starts_with("Filesystem features:")) continue;
    const auto words = test::words_of(line.substr(line.find(':') + 1));
    return {words.begin(), words.end()};
  }
  ADD_FAILURE() << text;
  return {};
}

class MadeByMke2fs : public testing::TestWithParam<const char*> {};

TEST_P(MadeByMke2fs, HasTheNamesThatDumpe2fsPrints) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), GetParam(), 65'536);
  const auto image = Image::open(test::open_or_fail(path));
  ASSERT_TRUE(image.has_value()) << image.error().what;
  const auto names = names_of_dumpe2fs(path);
  EXPECT_EQ(all_names((*image)->superblock().features()), names);
  EXPECT_GE(names.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(
    Options, MadeByMke2fs,
    testing::Values("-t ext2", "-t ext3", "-t ext4", "-t ext4 -O ^has_journal",
                    "-t ext4 -O fast_commit", "-t ext4 -O orphan_file,metadata_csum_seed",
                    "-t ext4 -O quota,project", "-t ext4 -O bigalloc -C 16384",
                    "-t ext4 -O inline_data,large_dir,ea_inode", "-t ext4 -O mmp",
                    "-t ext4 -O encrypt,casefold,verity,stable_inodes",
                    "-t ext4 -O ^metadata_csum,uninit_bg", "-t ext4 -O ^resize_inode,meta_bg",
                    "-t ext4 -O ^resize_inode,sparse_super2", "-t ext4 -O ^64bit,^flex_bg"));

// debugfs writes what mke2fs has no name for; with -f, dumpe2fs prints it.
TEST(UnknownBits, HaveTheNamesThatDumpe2fsPrints) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), "-t ext4", 8192);
  test::debugfs(path, "feature FEATURE_C17 FEATURE_R30\n");
  const auto image = Image::open(test::open_or_fail(path));
  ASSERT_TRUE(image.has_value());
  const auto names = names_of_dumpe2fs(path);
  EXPECT_TRUE(names.contains("FEATURE_C17"));
  EXPECT_TRUE(names.contains("FEATURE_R30"));
  EXPECT_EQ(all_names((*image)->superblock().features()), names);
}

struct Named {
  const char* name;
  FsFeatures features;
  const char* want;
};

class OneBit : public testing::TestWithParam<Named> {};

TEST_P(OneBit, HasItsName) {
  EXPECT_EQ(all_names(GetParam().features), std::set<std::string>{GetParam().want});
}

TEST_P(OneBit, IsUnknownIfItIsCalledByItsNumber) {
  const std::string want = GetParam().want;
  const bool by_number = want.starts_with("FEATURE_");
  EXPECT_EQ(unknown_feature_names(GetParam().features),
            by_number ? std::vector<std::string>{want} : std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Bits, OneBit,
    testing::Values(Named{"fast_commit", {.compat = 0x400}, "fast_commit"},
                    Named{"compat 12", {.compat = 0x1000}, "orphan_file"},
                    Named{"compat 7", {.compat = 0x80}, "FEATURE_C7"},
                    Named{"compat 31", {.compat = 0x8000'0000}, "FEATURE_C31"},
                    Named{"needs_recovery", {.incompat = 4}, "needs_recovery"},
                    Named{"journal_dev", {.incompat = 8}, "journal_dev"},
                    Named{"incompat 5", {.incompat = 0x20}, "FEATURE_I5"},
                    Named{"incompat 11", {.incompat = 0x800}, "FEATURE_I11"},
                    Named{"btree_dir is not named", {.ro_compat = 4}, "FEATURE_R2"},
                    Named{"has_snapshot is not named", {.ro_compat = 0x80}, "FEATURE_R7"},
                    Named{"orphan_present", {.ro_compat = 0x10000}, "orphan_present"}));

}  // namespace
}  // namespace jbdlab::analyze
