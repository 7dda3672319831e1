#include "analyze/features.h"

#include <fmt/core.h>

#include <array>
#include <span>

namespace jbdlab::analyze {
namespace {

struct Name {
  unsigned bit;  // its number
  std::string_view text;
};

// lib/e2p/feature.c of e2fsprogs 1.47.
constexpr std::array kCompat = std::to_array<Name>({
    {0, "dir_prealloc"},
    {1, "imagic_inodes"},
    {2, "has_journal"},
    {3, "ext_attr"},
    {4, "resize_inode"},
    {5, "dir_index"},
    {6, "lazy_bg"},
    {8, "snapshot_bitmap"},
    {9, "sparse_super2"},
    {10, "fast_commit"},
    {11, "stable_inodes"},
    {12, "orphan_file"},
});
constexpr std::array kIncompat = std::to_array<Name>({
    {0, "compression"},
    {1, "filetype"},
    {2, "needs_recovery"},
    {3, "journal_dev"},
    {4, "meta_bg"},
    {6, "extent"},
    {7, "64bit"},
    {8, "mmp"},
    {9, "flex_bg"},
    {10, "ea_inode"},
    {12, "dirdata"},
    {13, "metadata_csum_seed"},
    {14, "large_dir"},
    {15, "inline_data"},
    {16, "encrypt"},
    {17, "casefold"},
});
constexpr std::array kRoCompat = std::to_array<Name>({
    {0, "sparse_super"},
    {1, "large_file"},
    {3, "huge_file"},
    {4, "uninit_bg"},
    {5, "dir_nlink"},
    {6, "extra_isize"},
    {8, "quota"},
    {9, "bigalloc"},
    {10, "metadata_csum"},
    {11, "replica"},
    {12, "read-only"},
    {13, "project"},
    {14, "shared_blocks"},
    {15, "verity"},
    {16, "orphan_present"},
});

std::string_view name_of(std::span<const Name> table, unsigned bit) {
  for (const Name& name : table) {
    if (name.bit == bit) return name.text;
  }
  return {};
}

template <class Visit>
void for_each_bit(std::uint32_t word, Visit visit) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((word >> bit & 1) != 0) visit(bit);
  }
}

std::vector<std::string> names_in(std::uint32_t word, std::span<const Name> table, char letter) {
  std::vector<std::string> names;
  for_each_bit(word, [&](unsigned bit) {
    const std::string_view name = name_of(table, bit);
    names.push_back(name.empty() ? fmt::format("FEATURE_{}{}", letter, bit) : std::string{name});
  });
  return names;
}

}  // namespace

FeatureNames feature_names(const FsFeatures& features) {
  return {.compat = names_in(features.compat, kCompat, 'C'),
          .incompat = names_in(features.incompat, kIncompat, 'I'),
          .ro_compat = names_in(features.ro_compat, kRoCompat, 'R')};
}

std::vector<std::string> unknown_feature_names(const FsFeatures& features) {
  std::vector<std::string> names;
  const FeatureNames all = feature_names(features);
  for (const auto* word : {&all.compat, &all.incompat, &all.ro_compat}) {
    for (const std::string& name : *word) {
      if (name.starts_with("FEATURE_")) names.push_back(name);
    }
  }
  return names;
}

}  // namespace jbdlab::analyze
