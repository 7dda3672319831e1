#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jbdlab::analyze {

// A partition of a disk.
struct Volume {
  int number = 0;
  std::uint64_t offset = 0;  // bytes, as is `size`
  std::uint64_t size = 0;
  std::string name;        // GPT's; any bytes
  bool looks_ext = false;  // has the magic of ext2, ext3 and ext4 where a file system has it
};

struct VolumeList {
  std::string table;  // "dos" (MBR), "gpt", …: libblkid's word
  std::vector<Volume> volumes;
  static constexpr std::size_t kVolumesMax = 256;
};

// The partitions of a disk or of an image of one, by libblkid; only those that begin inside it, and
// no containers of others. Opens the file for reading. Nothing if it cannot, or if there is no
// partition table (also if this program was built without libblkid).
std::optional<VolumeList> find_volumes(const std::string& path);

// A line for each, with the options that name it.
std::string volumes_text(const VolumeList& list);

}  // namespace jbdlab::analyze
