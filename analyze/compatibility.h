#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/ext4_superblock.h"
#include "jbd2/format/features.h"

namespace jbdlab::analyze {

// What one feature asks of the software that is to use the file system. Versions are the first
// release that knows it; empty where no release is needed or none is known to us.
struct Requirement {
  std::string_view feature;
  std::string_view where;   // "filesystem" or "journal"
  std::string_view access;  // "write": without it a kernel mounts read-only; "mount": not at all;
                            // "none": an older kernel ignores it
  std::string_view kernel;  // of Linux
  std::string_view e2fsprogs;
  std::string_view grub;    // "any", a version, or "none": no release reads such a file system
  std::string_view source;  // of what is said
};

// A row for each feature that not every ext3 knows. `journal` may be null.
std::vector<Requirement> requirements(const FsFeatures& features, const jbd2::Features* journal);

}  // namespace jbdlab::analyze
