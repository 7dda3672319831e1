#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_ref.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "jbd2/block_source.h"
#include "jbd2/format/features.h"
#include "jbd2/format/geometry.h"
#include "jbd2/format/log_format.h"
#include "jbd2/format/superblock.h"
#include "jbd2/log_reader.h"
#include "jbd2/log_writer.h"

namespace jbdlab::jbd2 {

inline std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<std::byte>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

// The journal of the samples in journal-format.md.
inline Uuid sample_uuid() {
  Uuid uuid{};
  const auto bytes = from_hex("38e03eca0a8141c8993ab0c8070360b8");
  std::copy(bytes.begin(), bytes.end(), uuid.begin());
  return uuid;
}

// A seeded generator of its own, the same everywhere (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E37'79B9'7F4A'7C15U);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9U;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBU;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(next() % bound); }

 private:
  std::uint64_t state_;
};

// How a test journal is made.
struct JournalKind {
  ChecksumMode checksums = ChecksumMode::v3;
  bool is_64bit = true;
  std::uint32_t block_size = 1024;
  bool async_commit = false;
  std::uint32_t fast_commit_blocks = 0;
  std::uint32_t block_count = 1100;
};

inline Features features_of(const JournalKind& kind) {
  Features f;
  if (kind.checksums == ChecksumMode::v1) f.set(feature::kChecksum);
  if (kind.checksums == ChecksumMode::v2) f.set(feature::kChecksumV2);
  if (kind.checksums == ChecksumMode::v3) f.set(feature::kChecksumV3);
  if (kind.is_64bit) f.set(feature::k64Bit);
  if (kind.async_commit) f.set(feature::kAsyncCommit);
  if (kind.fast_commit_blocks != 0) f.set(feature::kFastCommit);
  return f;
}

// A journal in memory that transactions are written to one after another.
class TestJournal {
 public:
  explicit TestJournal(const JournalKind& kind, Tid first_tid = Tid{2},
                       LogBlock start = LogBlock{1})
      : superblock_(LogSuperblock::create({.block_size = kind.block_size,
                                           .block_count = kind.block_count,
                                           .first = LogBlock{1},
                                           .uuid = sample_uuid(),
                                           .fast_commit_blocks = kind.fast_commit_blocks})),
        source_(kind.block_size, kind.block_count),
        head_(start),
        tid_(first_tid) {
    superblock_.set_features(features_of(kind));
    superblock_.set_sequence(first_tid);
    superblock_.set_start(start);
    write_superblock();
  }

  LogSuperblock& superblock() { return superblock_; }
  void write_superblock() {
    superblock_.update_checksum();
    BlockRef block = BlockRef::zeros(source_.block_size());
    superblock_.build(block.mutate());
    source_.put(LogBlock{0}, block);
  }
  LogFormat format() const { return LogFormat::of(superblock_); }
  Geometry geometry() const { return Geometry::of(superblock_); }
  BlockRefSource& source() { return source_; }
  LogBlock head() const { return head_; }
  void set_head(LogBlock b) { head_ = b; }
  Tid tid() const { return tid_; }
  void set_tid(Tid tid) { tid_ = tid; }

  BlockRef block(std::string_view text) const {
    BlockRef b = BlockRef::zeros(source_.block_size());
    const auto bytes = std::as_bytes(std::span(text));
    std::copy(bytes.begin(), bytes.end(), b.mutate().begin());
    return b;
  }
  // Writes a transaction at the head; returns where its blocks are.
  std::vector<LogBlock> add(TransactionImage image) {
    image.tid = tid_;
    const auto written = write_transaction(format(), geometry(), head_, image);
    CHECK(written.has_value());
    std::vector<LogBlock> places;
    for (const LogWrite& w : written->writes) {
      source_.put(w.log_block, w.contents);
      places.push_back(w.log_block);
    }
    head_ = written->head;
    tid_ = tid_.next();
    return places;
  }
  // One with `blocks` blocks of some bytes.
  std::vector<LogBlock> add_blocks(std::uint32_t blocks, std::uint64_t commit_s = 1000) {
    TransactionImage image{.tid = {}, .time = {commit_s, 5}, .revoked = {}, .blocks = {}};
    for (std::uint32_t i = 0; i < blocks; ++i) {
      image.blocks.push_back(
          {FsBlock{100 + i}, block("block " + std::to_string(tid_.value() * 1000 + i))});
    }
    return add(std::move(image));
  }
  void flip(LogBlock at, std::size_t offset, unsigned mask = 1) {
    BlockRef b = source_.at(at);
    MutableByteSpan bytes = b.mutate();
    bytes[offset] ^= static_cast<std::byte>(mask);
    source_.put(at, b);
  }
  void zero(LogBlock at) { source_.put(at, BlockRef::zeros(source_.block_size())); }

  Result<LogContents> read(const LogReadOptions& options = {}) {
    return read_log(source_, options);
  }

 private:
  LogSuperblock superblock_;
  BlockRefSource source_;
  LogBlock head_;
  Tid tid_;
};

// "2 replayable, 3 corrupt", ...
inline std::string states(const LogContents& log) {
  std::string out;
  for (const LogTransaction& t : log.transactions) {
    out += (out.empty() ? "" : ", ") + std::to_string(t.tid.value()) + " " +
           std::string(to_string(t.state));
  }
  return out;
}
inline std::string fast_commit_states(const LogContents& log) {
  std::string out;
  for (const LogFastCommit& f : log.fast_commits) {
    out += (out.empty() ? "" : ", ") + std::to_string(f.tid.value()) + " " +
           std::string(to_string(f.state));
  }
  return out;
}
// Ids of the findings in order, with one blank between.
inline std::string finding_ids(const LogContents& log) {
  std::string out;
  for (const Finding& f : log.findings) {
    out += (out.empty() ? "" : " ") + std::string(f.kind->id);
  }
  return out;
}

}  // namespace jbdlab::jbd2
