#include "jbd2/log_fast_commit_scan.h"

#include <fmt/format.h>

#include <utility>

#include "base/crc32c.h"
#include "jbd2/format/csum.h"
#include "jbd2/format/fast_commit.h"

namespace jbdlab::jbd2 {
namespace {

// Writers of all kernels end a PAD within this many bytes of the end of the block (those before 6.2
// left up to nine, see "fix off-by-one errors in fast-commit block filling").
constexpr std::size_t kPadSlack = 10;

FastCommitEntry decode(const FcTlv& tlv, LogBlock at) {
  FastCommitEntry e;
  e.tag = tlv.tag;
  e.log_block = at;
  e.offset = static_cast<std::uint32_t>(tlv.offset);
  e.length = static_cast<std::uint32_t>(tlv.value.size());
  switch (tlv.tag) {
    case FcTag::add_range: {
      const FcAddRange r = FcAddRange::parse(tlv);
      e.ino = r.ino;
      e.lblk = r.lblk;
      e.pblk = r.pblk;
      e.len = r.len;
      e.unwritten = r.unwritten;
      break;
    }
    case FcTag::del_range: {
      const FcDelRange r = FcDelRange::parse(tlv);
      e.ino = r.ino;
      e.lblk = r.lblk;
      e.len = r.len;
      break;
    }
    case FcTag::creat:
    case FcTag::link:
    case FcTag::unlink: {
      const FcDentry d = FcDentry::parse(tlv);
      e.ino = d.ino;
      e.parent = d.parent;
      e.name = d.name;
      break;
    }
    case FcTag::inode: {
      const FcInode i = FcInode::parse(tlv);
      e.ino = i.ino;
      e.len = static_cast<std::uint32_t>(i.raw.size());
      break;
    }
    case FcTag::pad:
      break;
    case FcTag::tail:
      e.tid = FcTail::parse(tlv).tid;
      break;
    case FcTag::head: {
      const FcHead h = FcHead::parse(tlv);
      e.tid = h.tid;
      e.features = h.features;
      break;
    }
  }
  return e;
}

// One fast commit, or what looks like the beginning of one.
struct Piece {
  LogFastCommit commit;
  bool has_tail = false;
  bool broke_off_inside = false;  // at something that is no TLV, in the middle of a block
  std::string why;                // it has no tail
  LogBlock next;                  // first block behind it that can begin another
};

class AreaScan {
 public:
  AreaScan(const ScanContext& context, const FastCommitScan& scan)
      : context_(context), scan_(scan) {}

  std::vector<LogFastCommit> run() {
    const LogBlock rest = scan_.expected ? live(*scan_.expected) : scan_.first;
    behind(rest);
    return std::move(found_);
  }

 private:
  // Reads TLVs from the beginning of `first` to a TAIL, or to where they break off. What is tried
  // again after that begins behind the last block looked at: TLVs never cross a block, so any other
  // start would break off at the same place.
  Piece read_piece(LogBlock first) const {
    Piece piece;
    piece.commit.log_block = first;
    piece.why = "the area ends";
    piece.next = first;
    const std::uint32_t inode_size =
        context_.options.inode_size.value_or(context_.format.block_size);
    std::uint32_t crc = kFastCommitChecksumSeed;
    for (LogBlock at = first; at < scan_.end; at = LogBlock{at.value() + 1}) {
      piece.next = LogBlock{at.value() + 1};
      const auto block = context_.source.read(at);
      if (!block) {
        piece.why = block.error().what;
        return piece;
      }
      std::size_t offset = 0;
      while (block->size() - offset >= kFcHeaderSize) {
        const auto tlv = parse_fc_tlv(*block, offset, inode_size);
        const bool short_pad =
            tlv && tlv->tag == FcTag::pad && tlv->end() + kPadSlack < block->size();
        if (!tlv || short_pad) {
          piece.broke_off_inside = offset != 0;
          piece.why = tlv ? "a PAD ends before its block does" : tlv.error().what;
          return piece;
        }
        piece.commit.blocks = at.value() - first.value() + 1;
        piece.commit.tags.push_back(decode(*tlv, at));
        if (tlv->tag == FcTag::head) piece.commit.tid = FcHead::parse(*tlv).tid;
        offset = tlv->end();
        if (tlv->tag == FcTag::tail) {
          const FcTail tail = FcTail::parse(*tlv);
          crc = crc32c(crc, block->first(tlv->offset + kFcTailCovered));
          piece.has_tail = true;
          piece.commit.tid = tail.tid;
          piece.commit.crc_ok = crc == tail.crc;
          return piece;
        }
      }
      crc = crc32c(crc, block->first(offset));
    }
    return piece;
  }

  static bool begins_with_head(const Piece& piece) {
    return !piece.commit.tags.empty() && piece.commit.tags.front().tag == FcTag::head;
  }
  // Every HEAD in it names the expected tid (there should be one at most).
  static bool heads_match(const Piece& piece, Tid expected) {
    for (const FastCommitEntry& e : piece.commit.tags) {
      if (e.tag == FcTag::head && e.tid != expected) return false;
    }
    return true;
  }

  void keep(Piece piece, LogState state) {
    piece.commit.state = state;
    found_.push_back(std::move(piece.commit));
  }
  void report(const FindingKind& kind, const Piece& piece, std::string_view detail = {}) {
    context_.findings.add(kind, {piece.commit.tid, piece.commit.log_block, std::nullopt}, detail);
  }

  // What recovery would look at. Returns the first block of the rest.
  LogBlock live(Tid expected) {
    LogBlock at = scan_.first;
    while (at < scan_.end) {
      Piece piece = read_piece(at);
      const bool is_first = at == scan_.first;
      if (is_first && !begins_with_head(piece)) return at;
      if (is_first && piece.commit.tags.front().features != 0) {
        report(finding::kFastCommitFeatures, piece,
               fmt::format("{:#x}", piece.commit.tags.front().features));
        const LogBlock next = piece.next;
        keep(std::move(piece), LogState::corrupt);
        return next;
      }
      if (!heads_match(piece, expected)) return at;
      const bool ours = piece.has_tail && piece.commit.tid == expected;
      if (!ours || !piece.commit.crc_ok) {
        return leave_broken(std::move(piece), is_first, expected);
      }
      at = piece.next;
      keep(std::move(piece), LogState::replayable);
    }
    if (!found_.empty()) report_full_area(expected);
    return at;
  }

  void report_full_area(Tid expected) {
    context_.findings.add(finding::kFastCommitAreaFull, {expected, scan_.first, std::nullopt},
                          fmt::format("{} blocks", scan_.end.value() - scan_.first.value()));
  }

  // The fast commits that recovery takes end before `piece`: in damage, in a write that the crash
  // tore, or in what older ones left behind.
  LogBlock leave_broken(Piece piece, bool is_first, Tid expected) {
    const LogBlock at = piece.commit.log_block;
    const LogBlock next = piece.next;
    if (piece.has_tail && piece.commit.tid == expected) {
      report(finding::kFastCommitChecksum, piece);
      if (is_first) report(finding::kFastCommitTorn, piece);
      keep(std::move(piece), LogState::corrupt);
      return next;
    }
    if (is_first) {
      report(finding::kFastCommitTorn, piece,
             piece.has_tail ? fmt::format("its TAIL is of transaction {}", piece.commit.tid.value())
                            : piece.why);
      keep(std::move(piece), LogState::incomplete);
      return next;
    }
    if (piece.has_tail || piece.commit.tags.empty()) return at;  // stale, or nothing at all
    if (piece.broke_off_inside) report(finding::kFastCommitTlv, piece, piece.why);
    piece.commit.tid = expected;
    keep(std::move(piece), LogState::incomplete);
    return next;
  }

  // Behind the end: older generations, and what damage has cut off.
  void behind(LogBlock at) {
    bool reported = false;
    while (at < scan_.end) {
      Piece piece = read_piece(at);
      at = piece.next;
      if (!piece.has_tail || !piece.commit.crc_ok) continue;
      const bool lost = scan_.expected && piece.commit.tid == *scan_.expected;
      const bool unreachable =
          scan_.expected && scan_.ring_failed && piece.commit.tid.after(*scan_.expected);
      if ((lost || unreachable) && !std::exchange(reported, true)) {
        report(lost ? finding::kFastCommitHole : finding::kFastCommitUnreachable, piece);
      }
      if (lost || unreachable) {
        keep(std::move(piece), LogState::corrupt);
      } else if (context_.options.all) {
        keep(std::move(piece), LogState::stale);
      }
    }
  }

  const ScanContext& context_;
  const FastCommitScan& scan_;
  std::vector<LogFastCommit> found_;
};

}  // namespace

std::vector<LogFastCommit> scan_fast_commits(const ScanContext& context,
                                             const FastCommitScan& scan) {
  return AreaScan(context, scan).run();
}

}  // namespace jbdlab::jbd2
