#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

// Fast commits: what changed since the last full commit, as a list of TLVs (tag, length, value) in
// blocks of their own behind the ring. Little-endian, without jbd2 headers (fs/ext4/fast_commit.h;
// journal-format.md, section 7).
//
//   [HEAD tlv.. TAIL][tlv.. TAIL][tlv.. PAD][tlv.. TAIL] <stale blocks>
// A TLV never crosses a block; a fast commit begins with a block and ends with a TAIL that fills
// its last one. HEAD is the first TLV of the area only.
namespace jbdlab::jbd2 {

enum class FcTag : std::uint16_t {
  add_range = 1,
  del_range = 2,
  creat = 3,
  link = 4,
  unlink = 5,
  inode = 6,
  pad = 7,
  tail = 8,
  head = 9,
};
// "add_range", ...; empty for a value that the enum does not name.
std::string_view to_string(FcTag tag) noexcept;

inline constexpr std::size_t kFcHeaderSize = 4;  // le16 tag, le16 length

// One TLV where it lies. Borrows the block.
struct FcTlv {
  FcTag tag = FcTag::pad;
  std::size_t offset = 0;  // of its header in the block
  ByteSpan value;

  std::size_t end() const noexcept { return offset + kFcHeaderSize + value.size(); }
};

// The TLV at `offset` of `block`. Errors: truncated (fewer than 4 bytes left, or the value
// would leave the block), invalid (a tag or a length that no writer makes). `inode_size` bounds the
// image of an INODE.
Result<FcTlv> parse_fc_tlv(ByteSpan block, std::size_t offset, std::uint32_t inode_size);

// The values. Each parse expects a TLV that parse_fc_tlv() accepted, of its tag (CHECK); each
// build appends header and value, and its size is always kFcHeaderSize + the value's.

// HEAD, 8 bytes: u32 features (none is defined), u32 tid.
struct FcHead {
  std::uint32_t features = 0;
  Tid tid;
  static FcHead parse(const FcTlv& tlv);
  void build(std::vector<std::byte>& out) const;
  friend bool operator==(const FcHead&, const FcHead&) = default;
};

// ADD_RANGE, 16 bytes: u32 ino, extent: u32 lblk, u16 len (over 32768: unwritten, the length is
// what is over it), u16 pblk high, u32 pblk low.
struct FcAddRange {
  Ino ino;
  LogicalBlock lblk;
  std::uint32_t len = 0;  // blocks: 1 to 32768, unwritten 1 to 32767
  bool unwritten = false;
  FsBlock pblk;
  static FcAddRange parse(const FcTlv& tlv);
  void build(std::vector<std::byte>& out) const;
  friend bool operator==(const FcAddRange&, const FcAddRange&) = default;
};

// DEL_RANGE, 12 bytes: u32 ino, u32 lblk, u32 len.
struct FcDelRange {
  Ino ino;
  LogicalBlock lblk;
  std::uint32_t len = 0;
  static FcDelRange parse(const FcTlv& tlv);
  void build(std::vector<std::byte>& out) const;
  friend bool operator==(const FcDelRange&, const FcDelRange&) = default;
};

// CREAT, LINK, UNLINK, 8 + n bytes: u32 parent, u32 ino, n bytes of name (1 to 255).
struct FcDentry {
  FcTag tag = FcTag::creat;
  Ino parent;
  Ino ino;
  std::string_view name;  // borrowed
  static FcDentry parse(const FcTlv& tlv);
  void build(std::vector<std::byte>& out) const;
  friend bool operator==(const FcDentry&, const FcDentry&) = default;
};

// INODE, 4 + m bytes: u32 ino, the inode as it is on disk (at least 128 bytes).
struct FcInode {
  Ino ino;
  ByteSpan raw;  // borrowed
  static FcInode parse(const FcTlv& tlv);
  void build(std::vector<std::byte>& out) const;
};

// TAIL, 8 bytes and padding to the end of the block: u32 tid, u32 crc.
struct FcTail {
  Tid tid;
  std::uint32_t crc = 0;
  static FcTail parse(const FcTlv& tlv);
  friend bool operator==(const FcTail&, const FcTail&) = default;
};
// Bytes from a TAIL's header up to its crc: the last that the crc covers.
inline constexpr std::size_t kFcTailCovered = 8;

// Packs TLVs into blocks as the kernel does (ext4_fc_reserve_space in fs/ext4/fast_commit.c): a
// TLV of n bytes may stand at offset o only if a PAD header fits behind it, n <= B - 4 - o;
// otherwise PAD fills the block and the TLV begins the next.
class FastCommitBuilder {
 public:
  explicit FastCommitBuilder(std::uint32_t block_size);

  // One whole TLV, header included. False, and nothing happens, if it fits no block.
  bool add(ByteSpan tlv);
  // Ends the fast commit: TAIL with the crc of everything since the last one. The next add()
  // begins a new block.
  void finish(Tid tid);

  // The blocks so far, all block_size() long. Only what is before the last finish() is complete.
  const std::vector<std::vector<std::byte>>& blocks() const noexcept { return blocks_; }

 private:
  MutableByteSpan place(std::size_t size);

  std::uint32_t block_size_;
  std::uint32_t crc_ = 0;
  std::size_t at_ = 0;  // in the last block; 0: none is open
  std::vector<std::vector<std::byte>> blocks_;
};

}  // namespace jbdlab::jbd2
