#include "jbd2/format/descriptor.h"

#include <fmt/format.h>

#include <algorithm>

#include "jbd2/format/csum.h"

namespace jbdlab::jbd2 {
namespace {

constexpr std::uint32_t kUuidSize = 16;

Tag parse_tag(const TagLayout& layout, ByteSpan raw) {
  std::uint64_t block = get_be<std::uint32_t>(raw, 0);
  if (layout.has_high) block |= std::uint64_t{get_be<std::uint32_t>(raw, 8)} << 32;
  Tag tag{.fs_block = FsBlock{block}};
  tag.flags = layout.wide_flags ? get_be<std::uint32_t>(raw, 4) : get_be<std::uint16_t>(raw, 6);
  switch (layout.checksum) {
    case TagLayout::Checksum::none:
      break;
    case TagLayout::Checksum::low16:
      tag.checksum = get_be<std::uint16_t>(raw, 4);
      break;
    case TagLayout::Checksum::full32:
      tag.checksum = get_be<std::uint32_t>(raw, 12);
      break;
  }
  return tag;
}

void build_tag(const TagLayout& layout, const Tag& tag, MutableByteSpan raw) {
  set_be(raw, 0, static_cast<std::uint32_t>(tag.fs_block.value()));
  if (layout.has_high) set_be(raw, 8, static_cast<std::uint32_t>(tag.fs_block.value() >> 32));
  if (layout.wide_flags) {
    set_be(raw, 4, tag.flags);
  } else {
    set_be(raw, 6, static_cast<std::uint16_t>(tag.flags));
  }
  switch (layout.checksum) {
    case TagLayout::Checksum::none:
      break;
    case TagLayout::Checksum::low16:
      set_be(raw, 4, static_cast<std::uint16_t>(tag.checksum));
      break;
    case TagLayout::Checksum::full32:
      set_be(raw, 12, tag.checksum);
      break;
  }
}

}  // namespace

Result<void> parse_descriptor(const LogFormat& format, ByteSpan block, std::vector<Tag>& tags) {
  tags.clear();
  if (block.size() != format.block_size) {
    return fail(Errc::truncated, fmt::format("a descriptor block has {} bytes, found {}",
                                             format.block_size, block.size()));
  }
  const auto header = BlockHeader::parse(block);
  if (!header || header->type != BlockType::descriptor) {
    return fail(Errc::bad_magic, "a descriptor block begins with the magic and type 1");
  }
  const TagLayout layout = format.tag;
  const std::size_t end = block.size() - format.tail_size();
  for (std::size_t at = BlockHeader::kSize; at + layout.size <= end;) {
    const Tag tag = parse_tag(layout, block.subspan(at, layout.size));
    tags.push_back(tag);
    at += layout.size;
    if ((tag.flags & tag_flag::kSameUuid) == 0) at += kUuidSize;
    if ((tag.flags & tag_flag::kLastTag) != 0) break;
  }
  return {};
}

bool tag_checksum_matches(const TagLayout& layout, const Tag& tag,
                          std::uint32_t checksum) noexcept {
  switch (layout.checksum) {
    case TagLayout::Checksum::none:
      return true;
    case TagLayout::Checksum::low16:
      return tag.checksum == (checksum & 0xFFFF);
    case TagLayout::Checksum::full32:
      return tag.checksum == checksum;
  }
  return false;
}

DescriptorBuilder::DescriptorBuilder(const LogFormat& format, Tid tid, MutableByteSpan block)
    : format_(format), block_(block), at_(BlockHeader::kSize) {
  CHECK(block.size() == format.block_size);
  std::ranges::fill(block_, std::byte{0});
  BlockHeader{BlockType::descriptor, tid}.build(block_);
}

bool DescriptorBuilder::full() const noexcept {
  return count_ > 0 && block_.size() - at_ < format_.tag.size + kUuidSize + format_.tail_size();
}

void DescriptorBuilder::add(FsBlock fs_block, bool escaped, std::uint32_t checksum) {
  CHECK(!full());
  Tag tag{.fs_block = fs_block, .flags = escaped ? tag_flag::kEscape : 0, .checksum = checksum};
  if (count_ != 0) tag.flags |= tag_flag::kSameUuid;
  build_tag(format_.tag, tag, block_.subspan(at_, format_.tag.size));
  last_ = at_;
  at_ += format_.tag.size;
  if (count_ == 0) at_ += kUuidSize;  // zeros, as the kernel writes them
  ++count_;
}

void DescriptorBuilder::finish() {
  CHECK(count_ > 0);
  Tag tag = parse_tag(format_.tag, block_.subspan(last_, format_.tag.size));
  tag.flags |= tag_flag::kLastTag;
  build_tag(format_.tag, tag, block_.subspan(last_, format_.tag.size));
  if (format_.has_block_checksums()) store_tail_checksum(format_.seed, block_);
}

std::uint32_t DescriptorBuilder::capacity(const LogFormat& format) noexcept {
  // The first n with B - 12 - 16 - n * T < T + 16 + tail.
  const std::uint32_t size = format.tag.size;
  const std::uint32_t space = format.block_size - static_cast<std::uint32_t>(BlockHeader::kSize) -
                              kUuidSize - (size + kUuidSize + format.tail_size());
  return space / size + 1;
}

}  // namespace jbdlab::jbd2
