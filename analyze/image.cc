#include "analyze/image.h"

#include <ext2fs/ext2fs.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "analyze/ext2_channel.h"
#include "analyze/features.h"
#include "analyze/findings.h"
#include "base/check.h"

namespace jbdlab::analyze {
namespace {

// What a volume that is not ext4 may be instead, by its first KiB; empty if nobody knows.
std::string_view signature_of(ByteSpan raw) {
  struct Signature {
    std::size_t offset;
    std::string_view bytes;
    std::string_view name;
  };
  using namespace std::string_view_literals;
  constexpr std::array kSignatures = std::to_array<Signature>({
      {0, "QFI\xfb"sv, "a qcow2 image (convert it to raw first)"},
      {0,
       "\xfd"
       "7zXZ\0"sv,
       "an xz archive"},
      {0, "\x1f\x8b"sv, "a gzip archive"},
      {0, "\x28\xb5\x2f\xfd"sv, "a zstd archive"},
      {0, "\xc0\x3b\x39\x98"sv, "a bare journal (--exported)"},
      {0, "XFSB"sv, "an XFS file system"},
      {0, "hsqs"sv, "a squashfs file system"},
      {3, "NTFS    "sv, "an NTFS file system"},
      {512, "EFI PART"sv, "a partition table (name the volume with --offset)"},
      {510, "\x55\xaa"sv, "a partition table (name the volume with --offset)"},
  });
  for (const Signature& signature : kSignatures) {
    const ByteSpan wanted = std::as_bytes(std::span{signature.bytes});
    const ByteSpan there = raw.subspan(signature.offset, wanted.size());
    if (std::equal(wanted.begin(), wanted.end(), there.begin())) return signature.name;
  }
  const bool zeros =
      std::all_of(raw.begin(), raw.end(), [](std::byte b) { return b == std::byte{0}; });
  return zeros ? "zeros" : "";
}

std::unexpected<Error> not_ext4(ByteSource& bytes, Error error) {
  std::array<std::byte, Ext4Superblock::kOffset> front{};
  if (bytes.read(0, front)) {
    if (const auto name = signature_of(front); !name.empty()) {
      error.what += fmt::format("; the volume begins like {}", name);
    }
  }
  return std::unexpected(std::move(error));
}

std::vector<jbd2::Finding> findings_of(const Ext4Superblock& superblock, std::uint64_t size) {
  jbd2::FindingLog log;
  const std::uint64_t want = superblock.block_count() * superblock.block_size();
  if (size < want) {
    log.add(finding::kImageTruncated, {},
            fmt::format("expected {} bytes ({} blocks of {}), found {}", want,
                        superblock.block_count(), superblock.block_size(), size));
  }
  if (!superblock.checksum_ok()) log.add(finding::kFsSuperblockChecksum);
  for (const std::string& name : unknown_feature_names(superblock.features())) {
    log.add(finding::kFsUnknownFeature, {}, name);
  }
  if (superblock.has_errors()) log.add(finding::kFsErrors);
  constexpr std::uint16_t kStateFcReplay = 0x20;
  if ((superblock.state() & kStateFcReplay) != 0) log.add(finding::kFsInterruptedReplay);
  return std::move(log).finish();
}

}  // namespace

Result<std::unique_ptr<Image>> Image::open(std::unique_ptr<ByteSource> bytes) {
  std::array<std::byte, Ext4Superblock::kSize> raw{};
  if (bytes->size() < Ext4Superblock::kOffset + raw.size()) {
    return fail(Errc::truncated,
                fmt::format("not an ext2, ext3 or ext4 file system: expected a superblock at bytes "
                            "1024 to 2047, but it ends at byte {}",
                            bytes->size()));
  }
  if (const auto read = bytes->read(Ext4Superblock::kOffset, raw); !read) {
    return std::unexpected(read.error());
  }
  const auto superblock = Ext4Superblock::parse(raw);
  if (!superblock) return not_ext4(*bytes, superblock.error());
  if ((superblock->features().incompat & fs_feature::kJournalDev) != 0) {
    return fail(
        Errc::unsupported,
        fmt::format("expected a file system, found the external journal device {}: name its "
                    "file system, and this with --journal",
                    to_string(superblock->uuid())));
  }
  if (const auto checked = superblock->check(); !checked) return std::unexpected(checked.error());

  constexpr int kFlags = EXT2_FLAG_64BITS | EXT2_FLAG_FORCE | EXT2_FLAG_SUPER_ONLY |
                         EXT2_FLAG_SKIP_MMP | EXT2_FLAG_IGNORE_CSUM_ERRORS |
                         EXT2_FLAG_IGNORE_SB_ERRORS;
  ext2_filsys fs = nullptr;
  const std::string name = ext2_channel_name(*bytes);
  if (const errcode_t error =
          ext2fs_open2(name.c_str(), nullptr, kFlags, 0, 0, ext2_channel_manager(), &fs);
      error != 0) {
    return fail(Errc::invalid,
                fmt::format("impossible superblock: libext2fs says \"{}\"", error_message(error)));
  }
  return std::unique_ptr<Image>(new Image(std::move(bytes), *superblock, fs));
}

Image::Image(std::unique_ptr<ByteSource> bytes, const Ext4Superblock& superblock,
             struct_ext2_filsys* fs) noexcept
    : bytes_(std::move(bytes)), superblock_(superblock), fs_(fs) {
  findings_ = findings_of(superblock_, bytes_->size());
}

Image::~Image() { ext2fs_free(fs_); }

Result<void> Image::read_blocks(FsBlock block, MutableByteSpan out) {
  const std::uint64_t count = out.size() / block_size();
  if (block.value() >= block_count() || count > block_count() - block.value()) {
    return fail(Errc::not_found, fmt::format("expected a block below {}, found {}", block_count(),
                                             block.value() + count - 1));
  }
  return bytes_->read(block.value() * block_size(), out);
}

FsBlock Image::descriptor_block(std::uint32_t index) const {
  return FsBlock{ext2fs_descriptor_block_loc2(fs_, superblock_.first_data_block(), index)};
}

Result<GroupDescriptor> Image::group(GroupNo group) {
  if (group.value() >= superblock_.group_count()) {
    return fail(Errc::not_found, fmt::format("expected a block group below {}, found {}",
                                             superblock_.group_count(), group.value()));
  }
  const std::uint32_t per_block = superblock_.descriptors_per_block();
  const std::uint32_t index = group.value() / per_block;
  if (descriptors_index_ != index) {
    descriptors_index_.reset();
    descriptors_.resize(block_size());
    if (const auto read = read_blocks(descriptor_block(index), descriptors_); !read) {
      return std::unexpected(read.error());
    }
    descriptors_index_ = index;
  }
  const ByteSpan raw = ByteSpan{descriptors_}.subspan(
      std::size_t{group.value() % per_block} * superblock_.descriptor_size(),
      superblock_.descriptor_size());
  const bool wide = superblock_.descriptor_size() >= 64;
  const auto place = [&](std::size_t low, std::size_t high) {
    const std::uint64_t top = wide ? get_le<std::uint32_t>(raw, high) : 0;
    return FsBlock{top << 32 | get_le<std::uint32_t>(raw, low)};
  };
  return GroupDescriptor{place(0x00, 0x20), place(0x04, 0x24), place(0x08, 0x28)};
}

Result<Ext4Inode> Image::inode(Ino ino) {
  if (ino.value() == 0 || ino.value() > superblock_.inode_count()) {
    return fail(Errc::not_found, fmt::format("expected an inode of 1 to {}, found {}",
                                             superblock_.inode_count(), ino.value()));
  }
  const std::uint32_t index = (ino.value() - 1) % superblock_.inodes_per_group();
  const auto descriptor = group(GroupNo{(ino.value() - 1) / superblock_.inodes_per_group()});
  if (!descriptor) return std::unexpected(descriptor.error());
  const std::uint64_t byte = std::uint64_t{index} * superblock_.inode_size();
  const std::uint64_t block = descriptor->inode_table.value() + byte / block_size();
  if (descriptor->inode_table.value() == 0 || block >= block_count()) {
    return fail(Errc::not_found,
                fmt::format("expected the table of inode {} inside the file system, found block {}",
                            ino.value(), block));
  }
  std::array<std::byte, Ext4Inode::kSize> raw{};
  if (const auto read = bytes_->read(block * block_size() + byte % block_size(), raw); !read) {
    return std::unexpected(read.error());
  }
  return Ext4Inode::parse(raw);
}

GroupCopies Image::group_copies(GroupNo group) const {
  CHECK(group.value() < superblock_.group_count());
  blk64_t super = 0, old_first = 0, new_first = 0;
  ext2fs_super_and_bgd_loc2(fs_, group.value(), &super, &old_first, &new_first, nullptr);
  GroupCopies copies;
  const bool holds_first = group.value() == 0;
  if (super != 0 || holds_first) copies.superblock = FsBlock{super};
  if (old_first != 0) {
    const bool meta_bg = (superblock_.features().incompat & fs_feature::kMetaBg) != 0;
    const std::uint64_t count =
        meta_bg ? fs_->super->s_first_meta_bg
                : superblock_.descriptor_block_count() + superblock_.reserved_gdt_blocks();
    copies.descriptors_first = FsBlock{old_first};
    copies.descriptors_end = FsBlock{old_first + count};
  } else if (new_first != 0) {
    copies.descriptors_first = FsBlock{new_first};
    copies.descriptors_end = FsBlock{new_first + 1};
  }
  return copies;
}

}  // namespace jbdlab::analyze
