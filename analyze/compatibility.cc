#include "analyze/compatibility.h"

#include <array>
#include <span>

namespace jbdlab::analyze {
namespace {

constexpr std::string_view kMan = "ext4(5), KERNEL SUPPORT";
constexpr std::string_view kGrub = "ext4(5), KERNEL SUPPORT; grub-core/fs/ext2.c";
constexpr std::string_view kJournal = "include/linux/jbd2.h, JBD2_KNOWN_INCOMPAT_FEATURES";

struct Row {
  std::uint32_t bit;
  Requirement what;
};

// Of the e2fsprogs versions, those are named of which the release notes say so (doc/RelNotes).
constexpr std::array kCompat = std::to_array<Row>({
    {0x4, {"has_journal", "filesystem", "none", "2.4.15", "", "any", kMan}},
    {0x200, {"sparse_super2", "filesystem", "none", "3.16", "", "any", kMan}},
    {0x400,
     {"fast_commit", "filesystem", "none", "5.10", "1.46.0", "any",
      "fs/ext4/fast_commit.c; doc/RelNotes/v1.46.0.txt"}},
    {0x800, {"stable_inodes", "filesystem", "none", "5.5", "1.46.0", "any", kMan}},
    {0x1000,
     {"orphan_file", "filesystem", "none", "5.15", "1.47.0", "any",
      "fs/ext4/orphan.c; doc/RelNotes/v1.47.0.txt"}},
});
constexpr std::array kIncompat = std::to_array<Row>({
    {0x10, {"meta_bg", "filesystem", "mount", "2.6.28", "", "any", kGrub}},
    {0x40, {"extent", "filesystem", "mount", "2.6.28", "1.41.0", "any", kGrub}},
    {0x80, {"64bit", "filesystem", "mount", "2.6.28", "1.42", "any", kGrub}},
    {0x100, {"mmp", "filesystem", "mount", "3.0", "1.42", "any", kGrub}},
    {0x200, {"flex_bg", "filesystem", "mount", "2.6.28", "1.41.0", "any", kGrub}},
    {0x400, {"ea_inode", "filesystem", "mount", "4.13", "", "none", kGrub}},
    {0x2000, {"metadata_csum_seed", "filesystem", "mount", "4.4", "", "2.12", kGrub}},
    {0x4000, {"large_dir", "filesystem", "mount", "4.13", "", "2.12", kGrub}},
    {0x8000, {"inline_data", "filesystem", "mount", "3.8", "1.43", "none", kGrub}},
    {0x10000, {"encrypt", "filesystem", "mount", "4.1", "1.43", "", kMan}},
    {0x20000, {"casefold", "filesystem", "mount", "5.2", "", "", kMan}},
});
constexpr std::array kRoCompat = std::to_array<Row>({
    {0x8, {"huge_file", "filesystem", "write", "2.6.28", "", "any", kMan}},
    {0x10, {"uninit_bg", "filesystem", "write", "2.6.28", "", "any", kMan}},
    {0x20, {"dir_nlink", "filesystem", "write", "2.6.28", "", "any", kMan}},
    {0x40, {"extra_isize", "filesystem", "write", "2.6.28", "", "any", kMan}},
    {0x100, {"quota", "filesystem", "write", "3.6", "1.42", "any", kMan}},
    {0x200, {"bigalloc", "filesystem", "write", "3.2", "1.42", "any", kMan}},
    {0x400, {"metadata_csum", "filesystem", "write", "3.18", "1.43", "any", kMan}},
    {0x2000, {"project", "filesystem", "write", "4.5", "1.43", "any", kMan}},
    {0x8000, {"verity", "filesystem", "write", "5.4", "", "any", kMan}},
    {0x10000,
     {"orphan_present", "filesystem", "write", "5.15", "1.47.0", "any",
      "fs/ext4/orphan.c; doc/RelNotes/v1.47.0.txt"}},
});
// A journal with an incompatible bit that a kernel does not know keeps the file system from being
// mounted at all, not only from being replayed.
constexpr std::array kJournalIncompat = std::to_array<Row>({
    {0x2, {"journal_64bit", "journal", "mount", "2.6.28", "", "any", kJournal}},
    {0x4, {"journal_async_commit", "journal", "mount", "2.6.28", "", "any", kJournal}},
    {0x8, {"journal_checksum_v2", "journal", "mount", "3.5", "1.43", "any", kJournal}},
    {0x10, {"journal_checksum_v3", "journal", "mount", "3.18", "1.43", "any", kJournal}},
    {0x20,
     {"fast_commit", "journal", "mount", "5.10", "1.46.0", "any",
      "include/linux/jbd2.h; doc/RelNotes/v1.46.0.txt"}},
});

void add_rows(std::uint32_t word, std::span<const Row> table, std::vector<Requirement>& out) {
  for (const Row& row : table) {
    if ((word & row.bit) != 0) out.push_back(row.what);
  }
}

}  // namespace

std::vector<Requirement> requirements(const FsFeatures& features, const jbd2::Features* journal) {
  std::vector<Requirement> rows;
  add_rows(features.compat, kCompat, rows);
  add_rows(features.incompat, kIncompat, rows);
  add_rows(features.ro_compat, kRoCompat, rows);
  if (journal != nullptr) add_rows(journal->incompat, kJournalIncompat, rows);
  return rows;
}

}  // namespace jbdlab::analyze
