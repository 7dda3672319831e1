// Disks with partition tables that are written down here, byte by byte.
#include "analyze/volumes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/subject.h"
#include "base/bytes.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using test::TempDir;

#ifdef JBDLAB_HAVE_BLKID

constexpr std::size_t kSector = 512;
constexpr std::size_t kDiskSize = 16 << 20;
constexpr std::uint32_t kLinuxFirst = 2048, kLinuxCount = 16'384;  // sectors: 1 MiB, 8 MiB
constexpr std::uint32_t kOtherFirst = 20'480, kOtherCount = 2048;

std::vector<std::byte> empty_disk() { return std::vector<std::byte>(kDiskSize); }

// Master boot record (a table of four 16-byte entries at 446, and a signature).
void put_mbr_entry(MutableByteSpan disk, std::size_t index, std::uint8_t type, std::uint32_t first,
                   std::uint32_t count) {
  const std::size_t at = 446 + index * 16;
  disk[at + 4] = std::byte{type};
  set_le<std::uint32_t>(disk, at + 8, first);
  set_le<std::uint32_t>(disk, at + 12, count);
  disk[510] = std::byte{0x55};
  disk[511] = std::byte{0xAA};
}

// The CRC-32 of UEFI, which is that of zlib.
std::uint32_t crc32(ByteSpan bytes) {
  std::uint32_t crc = 0xFFFF'FFFF;
  for (const std::byte b : bytes) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB8'8320U : 0U);
  }
  return ~crc;
}

// A GPT with one partition "root", its header in sector 1 and its entries from sector 2 on.
void put_gpt(MutableByteSpan disk) {
  put_mbr_entry(disk, 0, 0xEE, 1, kDiskSize / kSector - 1);
  const MutableByteSpan entries = disk.subspan(2 * kSector, 128 * 128);
  set_le<std::uint32_t>(entries, 0, 0x0FC6'3DAF);  // Linux file system data
  set_le<std::uint32_t>(entries, 4, 0x4772'8483);
  set_le<std::uint32_t>(entries, 8, 0x693D'798E);
  set_le<std::uint32_t>(entries, 12, 0xE47D'47D8);
  set_le<std::uint32_t>(entries, 16, 1);  // its own uuid
  set_le<std::uint64_t>(entries, 32, kLinuxFirst);
  set_le<std::uint64_t>(entries, 40, kLinuxFirst + kLinuxCount - 1);
  const std::string_view name = "root";
  for (std::size_t i = 0; i < name.size(); ++i) {
    set_le<std::uint16_t>(entries, 56 + 2 * i, static_cast<std::uint16_t>(name[i]));
  }
  const MutableByteSpan header = disk.subspan(kSector, 92);
  set_le<std::uint64_t>(header, 0, 0x5452'4150'2049'4645);  // "EFI PART"
  set_le<std::uint32_t>(header, 8, 0x10000);
  set_le<std::uint32_t>(header, 12, 92);
  set_le<std::uint64_t>(header, 24, 1);
  set_le<std::uint64_t>(header, 32, kDiskSize / kSector - 1);
  set_le<std::uint64_t>(header, 40, 34);
  set_le<std::uint64_t>(header, 48, kDiskSize / kSector - 34);
  set_le<std::uint32_t>(header, 56, 2);  // the disk's uuid
  set_le<std::uint64_t>(header, 72, 2);
  set_le<std::uint32_t>(header, 80, 128);
  set_le<std::uint32_t>(header, 84, 128);
  set_le<std::uint32_t>(header, 88, crc32(entries));
  set_le<std::uint32_t>(header, 16, crc32(header));
}

std::filesystem::path write_disk(const TempDir& dir, const std::vector<std::byte>& disk) {
  const auto path = dir.path() / "disk";
  test::write_file(path, test::as_text(disk));
  return path;
}

// Puts an ext4 there that mke2fs made.
void put_ext4(const TempDir& dir, std::vector<std::byte>& disk) {
  const auto image = test::make_image(dir.path(), "-t ext4 -b 1024 -J size=1", 8192);
  const std::string bytes = test::read_file(image);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    disk[kLinuxFirst * kSector + i] = static_cast<std::byte>(bytes[i]);
  }
}

TEST(Volumes, OfAnMbrAreListedWithoutContainersAndWhatLiesOutside) {
  NEED_E2FSPROGS();
  const TempDir dir;
  std::vector<std::byte> disk = empty_disk();
  put_ext4(dir, disk);
  put_mbr_entry(disk, 0, 0x83, kLinuxFirst, kLinuxCount);
  put_mbr_entry(disk, 1, 0x0C, kOtherFirst, 1'000'000);  // longer than the disk
  put_mbr_entry(disk, 2, 0x83, 100'000, 2048);           // behind its end
  put_mbr_entry(disk, 3, 0x05, kOtherFirst + kOtherCount, 2048);
  const auto list = find_volumes(write_disk(dir, disk).string());
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->table, "dos");
  ASSERT_EQ(list->volumes.size(), 2U);
  EXPECT_EQ(list->volumes[0].number, 1);
  EXPECT_EQ(list->volumes[0].offset, 1U << 20);
  EXPECT_EQ(list->volumes[0].size, 8U << 20);
  EXPECT_TRUE(list->volumes[0].looks_ext);
  EXPECT_EQ(list->volumes[1].offset, kOtherFirst * kSector);
  EXPECT_EQ(list->volumes[1].size, kDiskSize - kOtherFirst * kSector);
  EXPECT_FALSE(list->volumes[1].looks_ext);
}

TEST(Volumes, OfAGptHaveNames) {
  NEED_E2FSPROGS();
  const TempDir dir;
  std::vector<std::byte> disk = empty_disk();
  put_ext4(dir, disk);
  put_gpt(disk);
  const auto list = find_volumes(write_disk(dir, disk).string());
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->table, "gpt");
  ASSERT_EQ(list->volumes.size(), 1U);
  EXPECT_EQ(list->volumes[0].name, "root");
  EXPECT_EQ(volumes_text(*list),
            "\n  --offset 1048576 --volume-size 8388608  partition 1, 8 MiB, ext2, ext3 or ext4, "
            "\"root\"");
}

TEST(Volumes, AreNamedWhereAFileSystemWasExpected) {
  NEED_E2FSPROGS();
  const TempDir dir;
  std::vector<std::byte> disk = empty_disk();
  put_ext4(dir, disk);
  put_mbr_entry(disk, 0, 0x83, kLinuxFirst, kLinuxCount);
  const std::string path = write_disk(dir, disk).string();
  const auto whole = open_subject({.image = path, .place = {}, .journal_device = {}});
  ASSERT_FALSE(whole.has_value());
  EXPECT_EQ(whole.error().what,
            path +
                ": expected a file system, found a disk with a partition table (dos) of these "
                "volumes:\n  --offset 1048576 --volume-size 8388608  partition 1, 8 MiB, ext2, "
                "ext3 or ext4");
  const auto volume = open_subject(
      {.image = path, .place = {.offset = 1 << 20, .size = 8 << 20}, .journal_device = {}});
  ASSERT_TRUE(volume.has_value());
  EXPECT_TRUE(volume->journal.has_value());
}

TEST(Volumes, OfATableThatIsEmptyAreNone) {
  const TempDir dir;
  std::vector<std::byte> disk = empty_disk();
  put_mbr_entry(disk, 0, 0x83, 200'000, 2048);
  const std::string path = write_disk(dir, disk).string();
  const auto subject = open_subject({.image = path, .place = {}, .journal_device = {}});
  ASSERT_FALSE(subject.has_value());
  EXPECT_TRUE(subject.error().what.ends_with("a partition table (dos) and no partitions in it"))
      << subject.error().what;
}

#endif

TEST(Volumes, AreNotFoundWithoutATable) {
  const TempDir dir;
  test::write_file(dir.path() / "zeros", std::string(1 << 20, '\0'));
  EXPECT_FALSE(find_volumes((dir.path() / "zeros").string()).has_value());
  EXPECT_FALSE(find_volumes((dir.path() / "missing").string()).has_value());
}

}  // namespace
}  // namespace jbdlab::analyze
