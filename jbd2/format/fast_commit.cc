#include "jbd2/format/fast_commit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "jbd2/format/csum.h"

namespace jbdlab::jbd2 {
namespace {

constexpr std::size_t kInodeMin = 128;  // EXT4_GOOD_OLD_INODE_SIZE
constexpr std::size_t kNameMax = 255;
constexpr std::uint32_t kExtentLengthMax = 32768;  // EXT_INIT_MAX_LEN

bool legal_length(FcTag tag, std::size_t length, std::uint32_t inode_size) noexcept {
  switch (tag) {
    case FcTag::add_range:
      return length == 16;
    case FcTag::del_range:
      return length == 12;
    case FcTag::creat:
    case FcTag::link:
    case FcTag::unlink:
      return length > 8 && length <= 8 + kNameMax;
    case FcTag::inode:
      return length >= 4 + kInodeMin && length <= 4 + std::size_t{inode_size};
    case FcTag::pad:
      return true;
    case FcTag::tail:
      return length >= 8;
    case FcTag::head:
      return length == 8;
  }
  return false;
}

template <std::unsigned_integral T>
void append_le(std::vector<std::byte>& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(T));
  set_le(MutableByteSpan(out), at, value);
}

void append_header(std::vector<std::byte>& out, FcTag tag, std::size_t length) {
  append_le(out, static_cast<std::uint16_t>(tag));
  append_le(out, static_cast<std::uint16_t>(length));
}

}  // namespace

std::string_view to_string(FcTag tag) noexcept {
  switch (tag) {
    case FcTag::add_range:
      return "add_range";
    case FcTag::del_range:
      return "del_range";
    case FcTag::creat:
      return "creat";
    case FcTag::link:
      return "link";
    case FcTag::unlink:
      return "unlink";
    case FcTag::inode:
      return "inode";
    case FcTag::pad:
      return "pad";
    case FcTag::tail:
      return "tail";
    case FcTag::head:
      return "head";
  }
  return "";
}

Result<FcTlv> parse_fc_tlv(ByteSpan block, std::size_t offset, std::uint32_t inode_size) {
  if (offset > block.size() || block.size() - offset < kFcHeaderSize) {
    return fail(Errc::truncated, "no room for the header of a TLV", offset);
  }
  const auto raw_tag = get_le<std::uint16_t>(block, offset);
  const std::size_t length = get_le<std::uint16_t>(block, offset + 2);
  const auto tag = static_cast<FcTag>(raw_tag);
  const std::size_t left = block.size() - offset - kFcHeaderSize;
  if (to_string(tag).empty()) {
    return fail(Errc::invalid, fmt::format("a TLV has tag 1 to 9, found {}", raw_tag), offset);
  }
  if (!legal_length(tag, length, inode_size)) {
    return fail(Errc::invalid,
                fmt::format("TLV {} cannot have a value of {} bytes", to_string(tag), length),
                offset + 2);
  }
  if (length > left) {
    return fail(Errc::truncated,
                fmt::format("TLV {} has a value of {} bytes, and the block has {} left",
                            to_string(tag), length, left),
                offset + 2);
  }
  return FcTlv{tag, offset, block.subspan(offset + kFcHeaderSize, length)};
}

FcHead FcHead::parse(const FcTlv& tlv) {
  CHECK(tlv.tag == FcTag::head);
  return {get_le<std::uint32_t>(tlv.value, 0), Tid{get_le<std::uint32_t>(tlv.value, 4)}};
}

void FcHead::build(std::vector<std::byte>& out) const {
  append_header(out, FcTag::head, 8);
  append_le(out, features);
  append_le(out, tid.value());
}

FcAddRange FcAddRange::parse(const FcTlv& tlv) {
  CHECK(tlv.tag == FcTag::add_range);
  FcAddRange r;
  r.ino = Ino{get_le<std::uint32_t>(tlv.value, 0)};
  r.lblk = LogicalBlock{get_le<std::uint32_t>(tlv.value, 4)};
  r.len = get_le<std::uint16_t>(tlv.value, 8);
  if (r.len > kExtentLengthMax) {
    r.len -= kExtentLengthMax;
    r.unwritten = true;
  }
  r.pblk = FsBlock{(std::uint64_t{get_le<std::uint16_t>(tlv.value, 10)} << 32) |
                   get_le<std::uint32_t>(tlv.value, 12)};
  return r;
}

void FcAddRange::build(std::vector<std::byte>& out) const {
  CHECK(len > 0 && len <= kExtentLengthMax - (unwritten ? 1 : 0));
  CHECK(pblk.value() >> 48 == 0);
  append_header(out, FcTag::add_range, 16);
  append_le(out, ino.value());
  append_le(out, lblk.value());
  append_le(out, static_cast<std::uint16_t>(unwritten ? len + kExtentLengthMax : len));
  append_le(out, static_cast<std::uint16_t>(pblk.value() >> 32));
  append_le(out, static_cast<std::uint32_t>(pblk.value()));
}

FcDelRange FcDelRange::parse(const FcTlv& tlv) {
  CHECK(tlv.tag == FcTag::del_range);
  return {Ino{get_le<std::uint32_t>(tlv.value, 0)},
          LogicalBlock{get_le<std::uint32_t>(tlv.value, 4)}, get_le<std::uint32_t>(tlv.value, 8)};
}

void FcDelRange::build(std::vector<std::byte>& out) const {
  append_header(out, FcTag::del_range, 12);
  append_le(out, ino.value());
  append_le(out, lblk.value());
  append_le(out, len);
}

FcDentry FcDentry::parse(const FcTlv& tlv) {
  CHECK(tlv.tag == FcTag::creat || tlv.tag == FcTag::link || tlv.tag == FcTag::unlink);
  const ByteSpan name = tlv.value.subspan(8);
  return {
      tlv.tag, Ino{get_le<std::uint32_t>(tlv.value, 0)}, Ino{get_le<std::uint32_t>(tlv.value, 4)},
      // Bytes are seen as characters, never the other way round.
      std::string_view(reinterpret_cast<const char*>(name.data()),  // NOLINT(*-reinterpret-cast)
                       name.size())};
}

void FcDentry::build(std::vector<std::byte>& out) const {
  CHECK(tag == FcTag::creat || tag == FcTag::link || tag == FcTag::unlink);
  CHECK(!name.empty() && name.size() <= kNameMax);
  append_header(out, tag, 8 + name.size());
  append_le(out, parent.value());
  append_le(out, ino.value());
  for (const char c : name) out.push_back(static_cast<std::byte>(c));
}

FcInode FcInode::parse(const FcTlv& tlv) {
  CHECK(tlv.tag == FcTag::inode);
  return {Ino{get_le<std::uint32_t>(tlv.value, 0)}, tlv.value.subspan(4)};
}

void FcInode::build(std::vector<std::byte>& out) const {
  CHECK(raw.size() >= kInodeMin && raw.size() <= 0xFFFF - 4);
  append_header(out, FcTag::inode, 4 + raw.size());
  append_le(out, ino.value());
  out.insert(out.end(), raw.begin(), raw.end());
}

FcTail FcTail::parse(const FcTlv& tlv) {
  CHECK(tlv.tag == FcTag::tail);
  return {Tid{get_le<std::uint32_t>(tlv.value, 0)}, get_le<std::uint32_t>(tlv.value, 4)};
}

FastCommitBuilder::FastCommitBuilder(std::uint32_t block_size)
    : block_size_(block_size), crc_(kFastCommitChecksumSeed) {}

MutableByteSpan FastCommitBuilder::place(std::size_t size) {
  const std::size_t most = block_size_ - kFcHeaderSize;  // a PAD header always fits behind
  if (at_ != 0 && size > most - at_) {
    MutableByteSpan block = blocks_.back();
    set_le(block, at_, static_cast<std::uint16_t>(FcTag::pad));
    set_le(block, at_ + 2, static_cast<std::uint16_t>(most - at_));
    crc_ = crc32c(crc_, block);
    at_ = 0;
  }
  if (at_ == 0) blocks_.emplace_back(block_size_);
  const MutableByteSpan room = MutableByteSpan(blocks_.back()).subspan(at_, size);
  at_ += size;
  return room;
}

bool FastCommitBuilder::add(ByteSpan tlv) {
  CHECK(tlv.size() >= kFcHeaderSize);
  if (tlv.size() > block_size_ - kFcHeaderSize) return false;
  std::ranges::copy(tlv, place(tlv.size()).begin());
  return true;
}

void FastCommitBuilder::finish(Tid tid) {
  constexpr std::size_t kTailSize = kFcHeaderSize + 8;
  place(kTailSize);
  const MutableByteSpan block = blocks_.back();
  const std::size_t at = at_ - kTailSize;
  set_le(block, at, static_cast<std::uint16_t>(FcTag::tail));
  set_le(block, at + 2, static_cast<std::uint16_t>(block_size_ - at - kFcHeaderSize));
  set_le(block, at + 4, tid.value());
  crc_ = crc32c(crc_, ByteSpan(block).first(at + kFcTailCovered));
  set_le(block, at + kFcTailCovered, crc_);
  crc_ = kFastCommitChecksumSeed;
  at_ = 0;
}

}  // namespace jbdlab::jbd2
