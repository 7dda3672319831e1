#include <benchmark/benchmark.h>

#include <cstdint>

#include "base/check.h"
#include "sim/device/block_layer.h"
#include "sim/device/device.h"
#include "sim/engine/engine.h"
#include "sim/trace.h"

// What the machine below the file system costs in real time: events of the engine, and the way of
// a bio from submit() to its completion.
namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBlockSize = 4096;

Task<> tick_forever(Engine& engine, Duration period) {
  for (;;) co_await engine.delay(period);
}

// As many processes as the argument says, each asleep most of the time.
void BM_engine_events(benchmark::State& state) {
  Engine engine;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    engine.spawn(tick_forever(engine, Duration(1000 + i)));
  }
  const bool never = false;
  std::uint64_t fired = 0;
  for (auto _ : state) {
    const std::uint64_t before = engine.events_fired();
    engine.run_until(never, engine.now() + Duration(1ms));
    fired += engine.events_fired() - before;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(fired));
}
BENCHMARK(BM_engine_events)->Arg(1)->Arg(16)->Arg(1024);

struct Machine {
  Engine engine;
  Trace trace{engine};
  std::unique_ptr<Device> device;
  std::unique_ptr<BlockLayer> blocks;

  Machine() {
    auto made = make_device("ram", engine, BlockStore(kBlockSize, std::uint64_t{1} << 30), {});
    CHECK(made.has_value());
    device = std::move(*made);
    blocks = std::make_unique<BlockLayer>(engine, trace, *device);
    trace.set_classifier(
        SectorClassifier(kBlockSize, {{FsBlock{0}, FsBlock{1}, SectorClass::super},
                                      {FsBlock{1}, FsBlock{32}, SectorClass::gdt},
                                      {FsBlock{37}, FsBlock{4129}, SectorClass::inode_table},
                                      {FsBlock{32802}, FsBlock{40994}, SectorClass::journal_log}}));
  }
};

// The I/O of one create, write and fsync: a data block, seven log blocks in a plug, a commit block.
Task<> fsync_io(Machine& machine, std::uint64_t number, const BlockRef& image, bool& done) {
  const std::uint64_t log = 32802 + number * 8 % 8184;
  const FsBlock data{50'000 + number % 100'000};
  co_await machine.blocks->submit_and_wait(
      Bio::write_block(data, BlockRef::pattern(kBlockSize, 1, number * kBlockSize, 0, kBlockSize),
                       {.sync = true}, {}));
  Latch latch(machine.engine);
  {
    Plug plug(*machine.blocks);
    for (std::uint64_t i = 0; i < 7; ++i) {
      plug.submit(Bio::write_block(FsBlock{log + i}, image, {.sync = true, .meta = true},
                                   completes(latch)));
    }
  }
  co_await latch.wait();
  co_await machine.blocks->submit_and_wait(Bio::write_block(
      FsBlock{log + 7}, image, {.preflush = true, .fua = true, .sync = true, .meta = true}, {}));
  done = true;
}

void BM_fsync_io(benchmark::State& state) {
  Machine machine;
  const BlockRef image = BlockRef::copy_of(std::vector<std::byte>(kBlockSize, std::byte{7}));
  std::uint64_t number = 0;
  for (auto _ : state) {
    bool done = false;
    machine.engine.spawn(fsync_io(machine, number++, image, done));
    machine.engine.run_until(done);
    if (number % 1024 == 0) machine.trace.counters = {};
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(number));
}
BENCHMARK(BM_fsync_io);

}  // namespace
}  // namespace jbdlab::sim
