// Reads a whole journal from hostile bytes (sparse_bytes.h). Options: bits 0 and 1 the block size
// (1, 2, 4 KiB; 3 is 4 KiB, too), bit 2 a right checksum in the superblock, bit 3 right checksums
// in control blocks, so that the fuzzer sees what lies behind them, bit 4 also stale transactions.
#include <cstdint>
#include <span>
#include <vector>

#include "jbd2/block_source.h"
#include "jbd2/format/csum.h"
#include "jbd2/format/header.h"
#include "jbd2/format/log_format.h"
#include "jbd2/log_reader.h"
#include "tests/fuzz/sparse_bytes.h"

namespace {

using jbdlab::ByteSpan;
using jbdlab::LogBlock;
using jbdlab::Result;
using jbdlab::test::SparseBytes;
namespace jbd2 = jbdlab::jbd2;

class SparseSource final : public jbd2::BlockSource {
 public:
  SparseSource(const SparseBytes& bytes, std::uint32_t block_size)
      : bytes_(bytes), buffer_(block_size) {}

  std::uint32_t block_size() const noexcept override {
    return static_cast<std::uint32_t>(buffer_.size());
  }
  std::uint32_t block_count() const noexcept override {
    return static_cast<std::uint32_t>(bytes_.size() / buffer_.size());
  }
  Result<ByteSpan> read(LogBlock block) override {
    if (block.value() >= block_count()) {
      return jbdlab::fail(jbdlab::Errc::truncated, "no such block");
    }
    bytes_.read(std::uint64_t{block.value()} * buffer_.size(), buffer_);
    return ByteSpan{buffer_};
  }

 private:
  const SparseBytes& bytes_;
  std::vector<std::byte> buffer_;
};

void correct_superblock(SparseBytes& bytes, std::uint32_t block_size) {
  std::vector<std::byte> block(block_size);
  bytes.read(0, block);
  if (auto superblock = jbd2::LogSuperblock::parse(block)) {
    superblock->update_checksum();
    bytes.write(0, superblock->bytes());
  }
}

void correct_control_blocks(SparseBytes& bytes, std::uint32_t block_size) {
  std::vector<std::byte> block(block_size);
  bytes.read(0, block);
  const auto superblock = jbd2::LogSuperblock::parse(block);
  if (!superblock) {
    return;
  }
  jbd2::LogFormat format = jbd2::LogFormat::of(*superblock);
  if (!format.has_block_checksums()) {
    return;
  }
  for (const std::uint64_t offset : bytes.touched(block_size)) {
    bytes.read(offset, block);
    const auto header = jbd2::BlockHeader::parse(block);
    if (!header) {
      continue;
    }
    if (header->type == jbd2::BlockType::descriptor || header->type == jbd2::BlockType::revoke) {
      jbd2::store_tail_checksum(format.seed, block);
    } else if (header->type == jbd2::BlockType::commit) {
      constexpr std::size_t kChecksumAt = 16;
      jbdlab::set_be(std::span{block}, kChecksumAt, jbd2::commit_checksum(format.seed, block));
    }
    bytes.write(offset, block);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SparseBytes bytes{std::as_bytes(std::span{data, size})};
  const std::uint32_t shift = bytes.options() & 3U;
  const std::uint32_t block_size = shift == 3 ? 4096 : 1024U << shift;
  if (bytes.size() < block_size) {
    return 0;
  }
  if ((bytes.options() & 4U) != 0) {
    correct_superblock(bytes, block_size);
  }
  if ((bytes.options() & 8U) != 0) {
    correct_control_blocks(bytes, block_size);
  }
  SparseSource source{bytes, block_size};
  jbd2::LogReadOptions options;
  options.all = (bytes.options() & 16U) != 0;
  options.fs_block_count = 1U << 20;
  const auto contents = jbd2::read_log(source, options);
  if (!contents) {
    CHECK(!contents.error().what.empty());
    return 0;
  }
  // What a reader says must lie inside the journal that it was given.
  for (const auto& transaction : contents->transactions) {
    CHECK(transaction.first.value() < source.block_count());
    for (const auto& block : transaction.blocks) {
      CHECK(block.log_block.value() < source.block_count());
    }
  }
  for (const auto& fast_commit : contents->fast_commits) {
    CHECK(fast_commit.log_block.value() < source.block_count());
  }
  CHECK(contents->findings.size() <= options.max_findings + 1);
  return 0;
}
