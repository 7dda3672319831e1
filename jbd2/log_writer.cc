#include "jbd2/log_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "jbd2/format/csum.h"
#include "jbd2/format/descriptor.h"
#include "jbd2/format/escape.h"
#include "jbd2/format/revoke.h"

namespace jbdlab::jbd2 {
namespace {

std::uint64_t divided_up(std::uint64_t n, std::uint64_t by) noexcept { return (n + by - 1) / by; }

bool expressible(const LogFormat& format, FsBlock block) noexcept {
  return format.is_64bit || block.value() >> 32 == 0;
}

std::unexpected<Error> too_high(FsBlock block) {
  return fail(Errc::invalid,
              fmt::format("without the 64-bit feature block {} cannot be logged", block.value()));
}

class Layout {
 public:
  Layout(const LogFormat& format, const Geometry& geometry, LogBlock head,
         const TransactionImage& transaction)
      : format_(format), geometry_(geometry), transaction_(transaction), head_(head) {}

  WrittenTransaction run() {
    revokes();
    data();
    BlockRef commit = BlockRef::zeros(format_.block_size);
    build_commit(format_, transaction_.tid, transaction_.time, sum_, commit.mutate());
    append(std::move(commit));
    return {std::move(writes_), head_};
  }

 private:
  void append(BlockRef contents) {
    writes_.push_back({head_, std::move(contents)});
    head_ = geometry_.next(head_);
  }

  void revokes() {
    const std::vector<FsBlock>& revoked = transaction_.revoked;
    for (std::size_t i = 0; i < revoked.size();) {
      BlockRef block = BlockRef::zeros(format_.block_size);
      RevokeBuilder builder(format_, transaction_.tid, block.mutate());
      while (i < revoked.size() && !builder.full()) builder.add(revoked[i++]);
      builder.finish();
      append(std::move(block));
    }
  }

  void data() {
    const std::vector<TransactionImage::Block>& blocks = transaction_.blocks;
    for (std::size_t i = 0; i < blocks.size();) {
      BlockRef block = BlockRef::zeros(format_.block_size);
      DescriptorBuilder builder(format_, transaction_.tid, block.mutate());
      const std::size_t place = writes_.size();
      append({});
      for (; i < blocks.size() && !builder.full(); ++i) {
        BlockRef logged = blocks[i].contents;
        const bool escaped = needs_escape(logged.bytes());
        if (escaped) escape(logged.mutate());
        const std::uint32_t sum =
            format_.has_block_checksums()
                ? data_checksum(format_.seed, transaction_.tid, logged.bytes())
                : 0;
        builder.add(blocks[i].fs_block, escaped, sum);
        append(std::move(logged));
      }
      builder.finish();
      writes_[place].contents = std::move(block);
      if (format_.checksums != ChecksumMode::v1) continue;
      for (std::size_t k = place; k < writes_.size(); ++k) {
        sum_ = add_to_transaction_checksum(sum_, writes_[k].contents.bytes());
      }
    }
  }

  const LogFormat& format_;
  const Geometry& geometry_;
  const TransactionImage& transaction_;
  LogBlock head_;
  std::uint32_t sum_ = kTransactionChecksumSeed;
  std::vector<LogWrite> writes_;
};

}  // namespace

std::uint64_t log_blocks_needed(const LogFormat& format, std::uint64_t blocks,
                                std::uint64_t revoked) noexcept {
  return divided_up(revoked, RevokeBuilder::capacity(format)) +
         divided_up(blocks, DescriptorBuilder::capacity(format)) + blocks + 1;
}

Result<WrittenTransaction> write_transaction(const LogFormat& format, const Geometry& geometry,
                                             LogBlock head, const TransactionImage& transaction) {
  CHECK(geometry.contains(head));
  for (const FsBlock b : transaction.revoked) {
    if (!expressible(format, b)) return too_high(b);
  }
  for (const TransactionImage::Block& b : transaction.blocks) {
    if (!expressible(format, b.fs_block)) return too_high(b.fs_block);
    if (b.contents.size() != format.block_size) {
      return fail(Errc::invalid, fmt::format("a block to log has {} bytes, found {}",
                                             format.block_size, b.contents.size()));
    }
  }
  const std::uint64_t needed =
      log_blocks_needed(format, transaction.blocks.size(), transaction.revoked.size());
  if (needed > geometry.count()) {
    return fail(Errc::no_space, fmt::format("the transaction needs {} blocks, and the log has {}",
                                            needed, geometry.count()));
  }
  return Layout(format, geometry, head, transaction).run();
}

}  // namespace jbdlab::jbd2
