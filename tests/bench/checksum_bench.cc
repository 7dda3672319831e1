#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/crc32be.h"
#include "base/crc32c.h"

// Bytes a second of the checksums: of one block in the processor's cache, and of 256 MiB from
// memory.
namespace jbdlab {
namespace {

template <std::uint32_t (*Checksum)(std::uint32_t, ByteSpan) noexcept>
void BM_checksum(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 3);
  std::uint32_t sum = 0xFFFF'FFFFU;
  for (auto _ : state) {
    sum = Checksum(sum, bytes);
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_checksum<crc32c>)->Name("BM_crc32c")->Arg(1024)->Arg(4096)->Arg(256 << 20);
BENCHMARK(BM_checksum<crc32c_portable>)->Name("BM_crc32c_portable")->Arg(4096);
BENCHMARK(BM_checksum<crc32be>)->Name("BM_crc32be")->Arg(4096);

}  // namespace
}  // namespace jbdlab
