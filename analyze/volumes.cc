#include "analyze/volumes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "analyze/byte_source.h"
#include "analyze/ext4_superblock.h"
#include "analyze/text_style.h"

#ifdef JBDLAB_HAVE_BLKID
#include <blkid/blkid.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#endif

namespace jbdlab::analyze {
namespace {

#ifdef JBDLAB_HAVE_BLKID

constexpr std::uint64_t kSectorSize = 512;  // libblkid counts in these, whatever the disk does

struct FreeProbe {
  void operator()(blkid_probe probe) const noexcept { blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<std::remove_pointer_t<blkid_probe>, FreeProbe>;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

bool looks_ext(ByteSource& disk, std::uint64_t offset) {
  std::array<std::byte, Ext4Superblock::kSize> raw{};
  return disk.read(offset + Ext4Superblock::kOffset, raw) && Ext4Superblock::parse(raw);
}

std::optional<Volume> volume_of(blkid_partition partition, ByteSource& disk) {
  const auto begin = static_cast<std::uint64_t>(blkid_partition_get_start(partition));
  const auto count = static_cast<std::uint64_t>(blkid_partition_get_size(partition));
  if (blkid_partition_is_extended(partition) != 0 || begin >= disk.size() / kSectorSize) {
    return std::nullopt;
  }
  const std::uint64_t room = disk.size() / kSectorSize - begin;
  const char* name = blkid_partition_get_name(partition);
  Volume volume{.number = blkid_partition_get_partno(partition),
                .offset = begin * kSectorSize,
                .size = std::min(count, room) * kSectorSize,
                .name = name == nullptr ? "" : name};
  volume.looks_ext = looks_ext(disk, volume.offset);
  return volume;
}

#endif

}  // namespace

std::optional<VolumeList> find_volumes([[maybe_unused]] const std::string& path) {
#ifdef JBDLAB_HAVE_BLKID
  const auto disk = open_file(path);
  const Descriptor descriptor(path);
  const Probe probe(blkid_new_probe());
  if (!disk || descriptor.get() < 0 || !probe ||
      blkid_probe_set_device(probe.get(), descriptor.get(), 0, 0) != 0) {
    return std::nullopt;
  }
  const blkid_partlist partitions = blkid_probe_get_partitions(probe.get());
  if (partitions == nullptr) return std::nullopt;
  const blkid_parttable table = blkid_partlist_get_table(partitions);
  const char* type = table == nullptr ? nullptr : blkid_parttable_get_type(table);
  if (type == nullptr) return std::nullopt;
  VolumeList list{.table = type, .volumes = {}};
  const int count = blkid_partlist_numof_partitions(partitions);
  for (int i = 0; i < count && list.volumes.size() < VolumeList::kVolumesMax; ++i) {
    const blkid_partition partition = blkid_partlist_get_partition(partitions, i);
    if (partition == nullptr) continue;
    if (auto volume = volume_of(partition, **disk)) list.volumes.push_back(*std::move(volume));
  }
  return list;
#else
  return std::nullopt;
#endif
}

std::string volumes_text(const VolumeList& list) {
  std::string text;
  for (const Volume& volume : list.volumes) {
    text += fmt::format("\n  --offset {} --volume-size {}  partition {}, {}{}{}", volume.offset,
                        volume.size, volume.number, size_text(volume.size),
                        volume.looks_ext ? ", ext2, ext3 or ext4" : ", another file system or none",
                        volume.name.empty() ? "" : ", \"" + name_text(volume.name) + "\"");
  }
  return text;
}

}  // namespace jbdlab::analyze
