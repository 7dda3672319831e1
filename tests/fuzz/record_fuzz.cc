// Parses one record of the journal from hostile bytes and builds it again. The first byte chooses
// the layout: bits 0 and 1 the checksums, bit 2 64-bit block numbers.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "jbd2/format/commit.h"
#include "jbd2/format/descriptor.h"
#include "jbd2/format/fast_commit.h"
#include "jbd2/format/header.h"
#include "jbd2/format/log_format.h"
#include "jbd2/format/revoke.h"
#include "jbd2/format/superblock.h"

namespace {

using namespace jbdlab;

constexpr std::uint32_t kBlockSize = 1024;

void try_superblock(ByteSpan block) {
  const auto superblock = jbd2::LogSuperblock::parse(block);
  if (!superblock) {
    return;
  }
  std::vector<std::byte> again(block.begin(), block.end());
  superblock->build(again);
  CHECK(std::equal(again.begin(), again.end(), block.begin(), block.end()));
  CHECK(superblock->features().names().size() <= 96);
  static_cast<void>(superblock->checksum_ok());
}

void try_descriptor(const jbd2::LogFormat& format, ByteSpan block) {
  std::vector<jbd2::Tag> tags;
  if (!jbd2::parse_descriptor(format, block, tags)) {
    return;
  }
  CHECK(tags.size() <= block.size() / format.tag.size);
  if (tags.empty() || tags.size() > jbd2::DescriptorBuilder::capacity(format)) {
    return;
  }
  // Built from what was parsed, it says the same but for the flags that a builder decides.
  std::vector<std::byte> built(block.size());
  jbd2::DescriptorBuilder builder{format, Tid{1}, built};
  for (const auto& tag : tags) {
    builder.add(tag.fs_block, tag.escaped(), tag.checksum);
  }
  builder.finish();
  std::vector<jbd2::Tag> again;
  CHECK(jbd2::parse_descriptor(format, built, again).has_value());
  CHECK(again.size() == tags.size());
  for (std::size_t i = 0; i < tags.size(); ++i) {
    CHECK(again[i].fs_block == tags[i].fs_block);
    CHECK(again[i].escaped() == tags[i].escaped());
    CHECK(again[i].checksum == tags[i].checksum);
  }
}

void try_revoke(const jbd2::LogFormat& format, ByteSpan block) {
  std::vector<FsBlock> blocks;
  if (!jbd2::parse_revoke(format, block, blocks)) {
    return;
  }
  CHECK(blocks.size() <= jbd2::RevokeBuilder::capacity(format));
  std::vector<std::byte> built(block.size());
  jbd2::RevokeBuilder builder{format, Tid{1}, built};
  for (const FsBlock b : blocks) {
    builder.add(b);
  }
  builder.finish();
  std::vector<FsBlock> again;
  CHECK(jbd2::parse_revoke(format, built, again).has_value());
  CHECK(again == blocks);
}

void try_commit(ByteSpan block) {
  if (const auto commit = jbd2::CommitBlock::parse(block)) {
    static_cast<void>(commit->time().since_epoch_ns());
  }
}

template <class Record>
void try_value(ByteSpan block, const jbd2::FcTlv& tlv) {
  std::vector<std::byte> built;
  Record::parse(tlv).build(built);
  const ByteSpan original = block.subspan(tlv.offset, tlv.end() - tlv.offset);
  CHECK(std::equal(built.begin(), built.end(), original.begin(), original.end()));
}

void try_fast_commit(ByteSpan block) {
  std::size_t offset = 0;
  while (offset < block.size()) {
    const auto tlv = jbd2::parse_fc_tlv(block, offset, 256);
    if (!tlv) {
      return;
    }
    CHECK(tlv->end() > offset && tlv->end() <= block.size());
    using enum jbd2::FcTag;
    switch (tlv->tag) {
      case add_range:
        if (jbd2::FcAddRange::parse(*tlv).len > 0) {  // no builder makes an empty range
          try_value<jbd2::FcAddRange>(block, *tlv);
        }
        break;
      case del_range:
        try_value<jbd2::FcDelRange>(block, *tlv);
        break;
      case creat:
      case link:
      case unlink:
        try_value<jbd2::FcDentry>(block, *tlv);
        break;
      case inode:
        try_value<jbd2::FcInode>(block, *tlv);
        break;
      case head:
        try_value<jbd2::FcHead>(block, *tlv);
        break;
      case tail:
        static_cast<void>(jbd2::FcTail::parse(*tlv));
        break;
      case pad:
        break;
    }
    offset = tlv->end();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const ByteSpan input = std::as_bytes(std::span{data + 1, size - 1});
  // Exactly one block, so that a read behind it is seen.
  std::vector<std::byte> block(kBlockSize);
  std::copy_n(input.begin(), std::min(input.size(), block.size()), block.begin());
  const auto mode = static_cast<jbd2::ChecksumMode>(data[0] & 3U);
  const auto format = jbd2::LogFormat::make(kBlockSize, mode, (data[0] & 4U) != 0, jbd2::Uuid{});
  try_superblock(block);
  try_descriptor(format, block);
  try_revoke(format, block);
  try_commit(block);
  try_fast_commit(block);
  // Short blocks are refused, not read.
  const ByteSpan cut = input.first(std::min<std::size_t>(input.size(), 64));
  try_superblock(cut);
  try_commit(cut);
  try_fast_commit(cut);
  return 0;
}
