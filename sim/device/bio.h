#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/block_ref.h"
#include "base/check.h"
#include "base/ids.h"
#include "base/time.h"
#include "sim/engine/sync.h"

// What travels between a file system and a device: a bio is what the file system submits, a request
// what reaches the device after merging and after the flush machinery (include/linux/blk_types.h,
// blk-mq.h).
namespace jbdlab::sim {

inline constexpr std::uint32_t kSectorSize = 512;  // bytes
using Sector = Id<struct SectorTag, std::uint64_t>;

// First sector of a file system block.
constexpr Sector sector_of(FsBlock block, std::uint32_t block_size) noexcept {
  return Sector{block.value() * (block_size / kSectorSize)};
}

enum class IoOp : std::uint8_t { read, write, flush, discard };

struct BioFlags {
  bool preflush = false;  // REQ_PREFLUSH: flush the device's cache first
  bool fua = false;       // REQ_FUA: on stable media when complete
  bool sync = false;      // REQ_SYNC: somebody waits
  bool meta = false;      // REQ_META
  bool rahead = false;    // REQ_RAHEAD
  friend bool operator==(const BioFlags&, const BioFlags&) = default;
};

// What happens at the end of an I/O: one call, without allocation. An I/O never fails: media errors
// are not simulated.
struct Completion {
  using Function = void (*)(void* context);
  Function function = nullptr;  // none: nobody is told
  void* context = nullptr;

  void operator()() const {
    if (function != nullptr) function(context);
  }
};

// Adds one piece of work to `latch`, which the completion marks as done. Use it in one bio.
inline Completion completes(Latch& latch) {
  latch.add();
  return {[](void* context) { static_cast<Latch*>(context)->done(); }, &latch};
}

// The contents of a write, one BlockRef for each block; a single one needs no memory of its own.
class BlockList {
 public:
  BlockList() = default;
  explicit BlockList(BlockRef only) noexcept : first_(std::move(only)) {}

  void push_back(BlockRef block) {
    if (!first_) {
      first_ = std::move(block);
    } else {
      rest_.push_back(std::move(block));
    }
  }
  std::size_t size() const noexcept { return first_ ? 1 + rest_.size() : 0; }
  bool empty() const noexcept { return !first_; }
  const BlockRef& operator[](std::size_t index) const {
    return index == 0 ? first_ : rest_[index - 1];
  }
  BlockRef& operator[](std::size_t index) { return index == 0 ? first_ : rest_[index - 1]; }

 private:
  BlockRef first_;
  std::vector<BlockRef> rest_;
};

// One I/O as the file system submits it. Blocks have the chunk size of the device's BlockStore,
// which is the file system's block size.
//
//   read     [sector, sector + sectors) may be part of a chunk; `into`, if not null, points to one
//            BlockRef for each chunk touched, which is set to the whole chunk at completion.
//   write    whole chunks: `blocks`. Empty with preflush: a flush and nothing else.
//   discard  whole chunks; they read as zeros afterwards.
//   flush    of requests only: a bio says write, preflush and no blocks.
struct Bio {
  IoOp op = IoOp::read;
  BioFlags flags{};
  // Pieces of memory that the contents lie in (bio_vecs after joining neighbours): one for each
  // folio. 0: one for each block. The device limits how many a request may have.
  std::uint32_t segments = 0;
  Sector sector{};
  std::uint32_t sectors = 0;
  BlockList blocks{};
  BlockRef* into = nullptr;
  Completion done{};

  std::uint64_t end_sector() const noexcept { return sector.value() + sectors; }

  static Bio write(Sector sector, BlockList blocks, BioFlags flags, Completion done) {
    CHECK(!blocks.empty());
    Bio bio{.op = IoOp::write, .flags = flags, .sector = sector};
    bio.sectors = static_cast<std::uint32_t>(blocks.size() * blocks[0].size() / kSectorSize);
    bio.blocks = std::move(blocks);
    bio.done = done;
    return bio;
  }
  static Bio write_block(FsBlock block, BlockRef contents, BioFlags flags, Completion done) {
    const Sector sector = sector_of(block, contents.size());
    return write(sector, BlockList(std::move(contents)), flags, done);
  }
  // `into` lives until completion.
  static Bio read_block(FsBlock block, std::uint32_t block_size, BlockRef* into, BioFlags flags,
                        Completion done) {
    return {.op = IoOp::read,
            .flags = flags,
            .sector = sector_of(block, block_size),
            .sectors = block_size / kSectorSize,
            .into = into,
            .done = done};
  }
  // blkdev_issue_flush().
  static Bio flush(Completion done) {
    return {.op = IoOp::write, .flags = {.preflush = true, .sync = true}, .done = done};
  }
};

// Letters of an I/O as the tracepoints print them (blk_fill_rwbs): "FWFSM", "RAM", "FF", …
std::string rwbs(IoOp op, const BioFlags& flags);

// One command to the device: one bio, or several neighbours that were merged. The block layer owns
// requests and reuses them; the device holds one from submit() until it calls `done`.
struct Request {
  IoOp op = IoOp::read;
  BioFlags flags{};  // of its first bio; preflush and fua only as far as the device is to see them
  Sector sector{};
  std::uint32_t sectors = 0;
  std::uint32_t segments = 0;
  std::vector<Bio> bios;  // in the order of sectors; none in a flush

  // The device's.
  std::uint64_t arrival = 0;  // number in the order of arrival, from 1
  Time arrived{};
  class Device* device = nullptr;
  std::uint64_t covers = 0;  // of a flush: the last write that it makes durable
  void (*done)(Request&, void* context) = nullptr;  // called when contents are what they should be
  void* done_context = nullptr;

  // The block layer's: which step of a flush sequence comes next.
  enum class Stage : std::uint8_t { none, preflush, data, postflush };
  Stage stage = Stage::none;
  bool then_data = false, then_postflush = false;

  std::uint64_t end_sector() const noexcept { return sector.value() + sectors; }
};

}  // namespace jbdlab::sim
