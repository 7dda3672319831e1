#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "jbd2/block_source.h"
#include "jbd2/format/superblock.h"
#include "jbd2/log_reader.h"
#include "jbd2/log_writer.h"

// How fast a whole journal is read, every checksum of it verified: a full 256 MiB log of mke2fs's
// present form (4 KiB blocks, 64 bit, checksums v3) in one piece of memory.
namespace jbdlab::jbd2 {
namespace {

constexpr std::uint32_t kBlockSize = 4096;
constexpr std::uint32_t kBlockCount = 65'536;
constexpr std::uint32_t kFsBlocks = 16U << 20;

std::span<std::byte> block_of(std::vector<std::byte>& journal, LogBlock block) {
  return std::span(journal).subspan(std::size_t{block.value()} * kBlockSize, kBlockSize);
}

// Transactions of `blocks` metadata blocks each, one behind the other until the ring is full. The
// writer lays them out as the kernel does. One block in 64 begins with the journal's magic.
std::vector<std::byte> full_log(std::uint32_t blocks) {
  Uuid uuid{};
  for (std::size_t i = 0; i < uuid.size(); ++i) uuid[i] = static_cast<std::byte>(i * 37 + 5);
  LogSuperblock super = LogSuperblock::create(
      {.block_size = kBlockSize, .block_count = kBlockCount, .first = LogBlock{1}, .uuid = uuid});
  Features features;
  for (const Feature& f : {feature::kRevoke, feature::k64Bit, feature::kChecksumV3}) {
    features.set(f);
  }
  super.set_features(features);
  super.set_sequence(Tid{2});
  super.set_start(LogBlock{1});
  super.update_checksum();

  std::vector<std::byte> journal(std::size_t{kBlockSize} * kBlockCount);
  super.build(block_of(journal, LogBlock{0}));
  const LogFormat format = LogFormat::of(super);
  const Geometry geometry = Geometry::of(super);
  const std::uint64_t needed = log_blocks_needed(format, blocks, 0);
  LogBlock head = geometry.first();
  std::uint64_t left = geometry.count();
  for (std::uint32_t n = 0; left > needed; ++n, left -= needed) {
    TransactionImage transaction{
        .tid = Tid{n + 2}, .time = {1'700'000'000U + n / 100, 0}, .revoked = {}, .blocks = {}};
    for (std::uint32_t i = 0; i < blocks; ++i) {
      BlockRef contents = BlockRef::pattern(kBlockSize, n, std::uint64_t{i} * kBlockSize, 0, 3500);
      if (i % 64 == 7) set_be<std::uint32_t>(contents.mutate(), 0, 0xC03B'3998U);
      transaction.blocks.push_back(
          {FsBlock{(std::uint64_t{n} * 7919 + i * 104'729ULL) % kFsBlocks}, std::move(contents)});
    }
    const auto written = write_transaction(format, geometry, head, transaction);
    CHECK(written.has_value());
    for (const LogWrite& write : written->writes) {
      write.contents.copy_to(block_of(journal, write.log_block));
    }
    head = written->head;
  }
  return journal;
}

void BM_log_scan(benchmark::State& state) {
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  const std::vector<std::byte> journal = full_log(blocks);
  MemoryBlockSource source(journal, kBlockSize);
  std::uint64_t bytes = 0;
  std::uint64_t transactions = 0;
  for (auto _ : state) {
    const auto log = read_log(source, {.all = true, .fs_block_count = kFsBlocks});
    CHECK(log.has_value());
    CHECK(log->findings.empty());
    for (const LogTransaction& t : log->transactions) {
      CHECK(t.state == LogState::replayable);
      CHECK(t.data_checksum == Verdict::good && t.control_checksum == Verdict::good);
      CHECK(t.commit_checksum == Verdict::good);
      bytes += (t.blocks.size() + t.control.size()) * kBlockSize;
    }
    transactions += log->transactions.size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.SetItemsProcessed(static_cast<std::int64_t>(transactions));
}
// Blocks in a transaction: those of one fsync, of a busy directory, of an untar.
BENCHMARK(BM_log_scan)
    ->ArgName("blocks")
    ->Arg(6)
    ->Arg(60)
    ->Arg(4000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace jbdlab::jbd2
