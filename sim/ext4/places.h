#pragma once

#include <vector>

#include "sim/ext4/journal_driver.h"
#include "sim/ext4/volume.h"
#include "sim/trace.h"

namespace jbdlab::ext4 {

// Where the fixed parts of the file system lie: superblocks and descriptor tables (with reserved
// blocks, and their backups), bitmaps, inode tables, and the parts of an internal journal. What
// dumpe2fs and the journal inode's extents tell the scripts of the recordings.
std::vector<sim::SectorClassifier::Range> fixed_places(Volume& volume, const JournalPlace& journal,
                                                       std::uint32_t fast_commit_blocks);

}  // namespace jbdlab::ext4
