#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ext4_superblock.h"

namespace jbdlab::analyze {

// Names of the feature bits of a file system, as dumpe2fs prints them, lowest bit first; where it
// has no name the kernel's is used, and a bit that nobody names is FEATURE_C12 style (its word and
// its number from 0), as dumpe2fs prints it.
struct FeatureNames {
  std::vector<std::string> compat;
  std::vector<std::string> incompat;
  std::vector<std::string> ro_compat;
};
FeatureNames feature_names(const FsFeatures& features);

// The names of those among them that this program does not know.
std::vector<std::string> unknown_feature_names(const FsFeatures& features);

}  // namespace jbdlab::analyze
