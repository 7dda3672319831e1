#include "analyze/image.h"

#include <array>
#include <cstring>
#include <string>

#include "analyze/subject.h"
#include "base/crc32c.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using test::make_image;
using test::TempDir;

// An image in memory, for tests that change its bytes.
class Bytes {
 public:
  explicit Bytes(std::string_view options, std::uint64_t size_kib = 8192) {
    const TempDir dir;
    const std::string text = test::read_file(make_image(dir.path(), options, size_kib));
    bytes_.resize(text.size());
    std::memcpy(bytes_.data(), text.data(), text.size());
  }

  MutableByteSpan all() { return bytes_; }
  MutableByteSpan superblock() { return all().subspan(1024, 1024); }
  void update_checksum() {
    set_le<std::uint32_t>(superblock(), 0x3FC, crc32c(0xFFFF'FFFF, superblock().first(0x3FC)));
  }
  void cut(std::size_t size) { bytes_.resize(size); }
  Result<std::unique_ptr<Image>> open() {
    return Image::open(std::make_unique<MemorySource>(bytes_));
  }
  Result<Subject> subject() {
    return open_subject(std::make_unique<MemorySource>(bytes_), nullptr);
  }

 private:
  std::vector<std::byte> bytes_;
};

struct Field {
  const char* name;
  std::size_t offset;
  std::size_t size;
  std::uint32_t value;
  Errc code;
  const char* sentence;  // a part of it
};

class ImpossibleField : public testing::TestWithParam<Field> {};

TEST_P(ImpossibleField, IsRefusedWithASentence) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4");
  const Field& field = GetParam();
  if (field.size == 2) {
    set_le<std::uint16_t>(bytes.superblock(), field.offset,
                          static_cast<std::uint16_t>(field.value));
  } else {
    set_le<std::uint32_t>(bytes.superblock(), field.offset, field.value);
  }
  bytes.update_checksum();
  const auto image = bytes.open();
  ASSERT_FALSE(image.has_value());
  EXPECT_EQ(image.error().code, field.code) << image.error().what;
  EXPECT_NE(image.error().what.find(field.sentence), std::string::npos) << image.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ImpossibleField,
    testing::Values(
        Field{"magic", 0x38, 2, 0x1234, Errc::bad_magic,
              "expected the magic ef53 at byte 1080, found 1234"},
        Field{"block size", 0x18, 4, 7, Errc::invalid, "expected a block size of 1 to 64 KiB"},
        Field{"huge block size", 0x18, 4, 0xFFFF'FFFF, Errc::invalid, "found 4294967295"},
        Field{"revision", 0x4C, 4, 2, Errc::invalid, "expected revision 0 or 1, found 2"},
        Field{"first data block", 0x14, 4, 9000, Errc::invalid, "first data block of 0 or 1"},
        Field{"no blocks", 0x04, 4, 0, Errc::invalid, "expected blocks behind block"},
        Field{"2^63 blocks", 0x150, 4, 0x8000'0000, Errc::invalid, "at most 2^48 blocks"},
        Field{"no blocks in a group", 0x20, 4, 0, Errc::invalid, "blocks in a group, found 0"},
        Field{"too large a group", 0x20, 4, 0x10000, Errc::invalid,
              "blocks in a group, found 65536"},
        Field{"no inodes in a group", 0x28, 4, 0, Errc::invalid, "inodes in a group, found 0"},
        Field{"too many inodes", 0x00, 4, 0x7FFF'FFFF, Errc::invalid, "expected at most"},
        Field{"no inodes", 0x00, 4, 0, Errc::invalid, "expected at most"},
        Field{"inode size 0", 0x58, 2, 0, Errc::invalid, "expected an inode size of 128 to"},
        Field{"inode size 192", 0x58, 2, 192, Errc::invalid, "a power of two, found 192"},
        Field{"descriptor size 0", 0xFE, 2, 0, Errc::invalid, "group descriptors of 64 to"},
        Field{"descriptor size 96", 0xFE, 2, 96, Errc::invalid, "found 96"},
        Field{"a journal device", 0x60, 4, 8, Errc::unsupported, "external journal device"}),
    [](const auto& row) {
      std::string name = row.param.name;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

// Features count whatever the revision, and with them what they make of other fields.
TEST(ImageOpen, BelievesFeaturesOfRevision0) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4 -I 128");
  set_le<std::uint32_t>(bytes.superblock(), 0x4C, 0);
  bytes.update_checksum();
  const auto image = bytes.open();
  ASSERT_TRUE(image.has_value()) << image.error().what;
  EXPECT_NE((*image)->superblock().features().incompat & fs_feature::k64Bit, 0U);
  set_le<std::uint16_t>(bytes.superblock(), 0xFE, 0);
  EXPECT_EQ(bytes.open().error().code, Errc::invalid);
}

TEST(ImageOpen, RefusesWhatEndsBeforeTheSuperblock) {
  const std::array<std::byte, 2047> bytes{};
  const auto image = Image::open(std::make_unique<MemorySource>(bytes));
  ASSERT_FALSE(image.has_value());
  EXPECT_EQ(image.error().code, Errc::truncated);
  EXPECT_NE(image.error().what.find("it ends at byte 2047"), std::string::npos);
}

struct Front {
  const char* name;
  std::size_t offset;
  std::string_view bytes;
};

class OtherVolume : public testing::TestWithParam<Front> {};

TEST_P(OtherVolume, IsNamed) {
  std::array<std::byte, 4096> bytes{};
  std::memcpy(bytes.data() + GetParam().offset, GetParam().bytes.data(), GetParam().bytes.size());
  const auto image = Image::open(std::make_unique<MemorySource>(bytes));
  ASSERT_FALSE(image.has_value());
  EXPECT_TRUE(image.error().what.ends_with(std::string{"begins like "} + GetParam().name))
      << image.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Signatures, OtherVolume,
    testing::Values(Front{"zeros", 0, ""},
                    Front{"a qcow2 image (convert it to raw first)", 0, "QFI\xfb"},
                    Front{"an XFS file system", 0, "XFSB"}, Front{"a gzip archive", 0, "\x1f\x8b"},
                    Front{"a bare journal (--exported)", 0, "\xc0\x3b\x39\x98"},
                    Front{"a partition table (name the volume with --offset)", 510, "\x55\xaa"}));

std::vector<std::string> ids_of(const std::vector<jbd2::Finding>& findings) {
  std::vector<std::string> ids;
  for (const auto& finding : findings) ids.emplace_back(finding.kind->id);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(ImageFindings, AreNoneForAFreshFileSystem) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4");
  const auto image = bytes.open();
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(ids_of((*image)->findings()), Ids{});
  EXPECT_TRUE((*image)->superblock().has_checksum());
}

TEST(ImageFindings, NameAWrongChecksum) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4");
  set_le<std::uint32_t>(bytes.superblock(), 0x3FC, 0x1234'5678);
  const auto image = bytes.open();
  ASSERT_TRUE(image.has_value()) << image.error().what;
  EXPECT_EQ(ids_of((*image)->findings()), Ids{"fs-superblock-checksum"});
}

TEST(ImageFindings, NameAnUnknownFeatureAndReadOn) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4");
  const auto word = get_le<std::uint32_t>(bytes.superblock(), 0x60);
  set_le<std::uint32_t>(bytes.superblock(), 0x60, word | 0x4000'0000);
  bytes.update_checksum();
  const auto subject = bytes.subject();
  ASSERT_TRUE(subject.has_value()) << subject.error().what;
  EXPECT_EQ(ids_of(subject->findings), Ids{"fs-unknown-feature"});
  EXPECT_NE(subject->findings[0].text.find("FEATURE_I30"), std::string::npos);
  EXPECT_TRUE(subject->journal.has_value());
}

TEST(ImageFindings, NameAnImageThatIsCutOff) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4");
  bytes.cut(8192 * 1024 - 1);
  const auto image = bytes.open();
  ASSERT_TRUE(image.has_value());
  ASSERT_EQ(ids_of((*image)->findings()), Ids{"image-truncated"});
  EXPECT_NE((*image)->findings()[0].text.find("expected 8388608 bytes"), std::string::npos)
      << (*image)->findings()[0].text;
}

TEST(ImageFindings, NameErrorsThatTheKernelRecorded) {
  NEED_E2FSPROGS();
  Bytes bytes("-t ext4");
  set_le<std::uint16_t>(bytes.superblock(), 0x3A, 3);
  bytes.update_checksum();
  const auto image = bytes.open();
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(ids_of((*image)->findings()), Ids{"fs-errors"});
  EXPECT_EQ((*image)->superblock().state_text(), "clean with errors");
}

// Everything that dumpe2fs says of each group, by the two ways to lay out descriptors.
class GroupLayout : public testing::TestWithParam<const char*> {};

TEST_P(GroupLayout, IsThatOfDumpe2fs) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), GetParam(), 65'536);
  const auto image = Image::open(test::open_or_fail(path));
  ASSERT_TRUE(image.has_value());
  std::uint64_t groups = 0, superblocks = 0;
  for (const std::string& line :
       test::lines_of(test::must_run({"dumpe2fs", "-g", path.string()}))) {
    // group:block:super:gdt:bbitmap:ibitmap:itable
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ':') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    if (cells.size() != 7 || cells[0] == "group") continue;
    const auto number = [&](std::size_t i) { return std::stoull(cells[i]); };
    const GroupNo group{static_cast<std::uint32_t>(number(0))};
    const auto facts = (*image)->group(group);
    ASSERT_TRUE(facts.has_value());
    EXPECT_EQ(facts->block_bitmap.value(), number(4)) << line;
    EXPECT_EQ(facts->inode_bitmap.value(), number(5)) << line;
    EXPECT_EQ(facts->inode_table.value(), number(6)) << line;
    const GroupCopies copies = (*image)->group_copies(group);
    EXPECT_EQ(copies.superblock ? std::to_string(copies.superblock->value()) : "-1", cells[2])
        << line;
    if (copies.superblock) ++superblocks;
    const std::string& gdt = cells[3];
    if (gdt == "-1") {
      EXPECT_EQ(copies.descriptors_first, copies.descriptors_end) << line;
    } else {
      EXPECT_EQ(copies.descriptors_first.value(), std::stoull(gdt)) << line;
      EXPECT_GE(copies.descriptors_end.value(), std::stoull(gdt.substr(gdt.find('-') + 1)) + 1)
          << line;
    }
    ++groups;
  }
  EXPECT_EQ(groups, (*image)->superblock().group_count());
  EXPECT_GE(superblocks, 2U);
  EXPECT_EQ((*image)->group(GroupNo{static_cast<std::uint32_t>(groups)}).error().code,
            Errc::not_found);
}

INSTANTIATE_TEST_SUITE_P(Options, GroupLayout,
                         testing::Values("-t ext4 -b 1024", "-t ext4 -b 4096 -g 1024",
                                         "-t ext4 -b 1024 -O ^resize_inode,meta_bg -g 1024",
                                         "-t ext3 -b 1024 -g 1024",
                                         "-t ext4 -b 2048 -g 1024 -O ^64bit,^flex_bg"));

TEST(ImageInode, IsThatOfDebugfs) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), "-t ext4 -b 1024", 65'536);
  const auto image = Image::open(test::open_or_fail(path));
  ASSERT_TRUE(image.has_value());
  const auto root = (*image)->inode(Ino{2});
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->mode(), 040755);
  EXPECT_EQ(root->link_count(), 3);
  EXPECT_EQ(root->size(), 1024U);
  EXPECT_EQ((*image)->inode(Ino{0}).error().code, Errc::not_found);
  EXPECT_EQ((*image)->inode(Ino{(*image)->superblock().inode_count() + 1}).error().code,
            Errc::not_found);
  EXPECT_TRUE((*image)->inode(Ino{(*image)->superblock().inode_count()}).has_value());
}

}  // namespace
}  // namespace jbdlab::analyze
