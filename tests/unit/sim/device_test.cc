#include "sim/device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "sim/device/kinds.h"

namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kChunk = 2048;
constexpr std::uint32_t kChunkSectors = kChunk / 512;
constexpr std::uint64_t kChunks = 24;
constexpr bool kNever = false;

// Any request may overtake any other.
class RandomCost final : public CostModel {
 public:
  explicit RandomCost(std::uint64_t seed) : random_(seed) {}
  Time completion(const Request&, Time now) override {
    return now + Duration(static_cast<std::int64_t>(random_.below(20'000)));
  }

 private:
  Random random_;
};

DeviceInfo test_info(bool volatile_cache) {
  DeviceInfo info;
  info.name = "test";
  info.volatile_cache = volatile_cache;
  info.fua = true;
  return info;
}

// A block whose every sector says which version of it this is.
BlockRef version_block(std::uint64_t version) {
  std::vector<std::byte> bytes(kChunk);
  for (std::size_t i = 0; i < kChunk; i += 512) set_le<std::uint64_t>(bytes, i, version);
  return BlockRef::copy_of(bytes);
}

// What every chunk may hold after a power cut, kept apart from the device and in another way: all
// versions of each chunk, each with the moment at which it completed and whether it must survive.
class Promises {
 public:
  struct Version {
    std::uint64_t number = 0;
    std::uint64_t completed = 0;  // 0: in flight
    bool durable = false;
  };
  std::map<std::uint64_t, std::vector<Version>> chunks;
  std::uint64_t completions = 0;

  void started(std::uint64_t chunk, std::uint64_t number) { chunks[chunk].push_back({number}); }
  void completed(std::uint64_t chunk, std::uint64_t number, bool durable) {
    for (Version& v : chunks[chunk]) {
      if (v.number == number) {
        v.completed = completions;
        v.durable = durable;
      }
    }
  }
  void flushed(std::uint64_t up_to) {
    for (auto& [chunk, versions] : chunks) {
      for (Version& v : versions) v.durable |= v.completed != 0 && v.completed <= up_to;
    }
  }
  // The newest version that must survive; 0 is the empty chunk.
  Version durable(std::uint64_t chunk) const {
    Version newest;
    const auto at = chunks.find(chunk);
    if (at == chunks.end()) return newest;
    for (const Version& v : at->second) {
      if (v.durable && v.completed >= newest.completed) newest = v;
    }
    return newest;
  }
  bool legal(std::uint64_t chunk, std::uint64_t number) const {
    const Version must = durable(chunk);
    if (number == must.number) return true;
    const auto at = chunks.find(chunk);
    return at != chunks.end() && std::ranges::any_of(at->second, [&](const Version& v) {
             return v.number == number && (v.completed == 0 || v.completed > must.completed);
           });
  }
};

// Random writes, FUA writes, discards and flushes on a device, with the promises kept beside.
class RandomTraffic {
 public:
  RandomTraffic(std::uint64_t seed, bool volatile_cache)
      : device(engine, test_info(volatile_cache), std::make_unique<RandomCost>(seed),
               BlockStore(kChunk, kChunks * kChunk), {.track_durability = true}),
        random_(Random(seed).fork("traffic")),
        volatile_cache_(volatile_cache) {
    engine.spawn(run());
  }

  Engine engine;
  Device device;
  Promises promises;

 private:
  struct Pending {
    RandomTraffic* traffic;
    Request request;
    std::uint64_t first_chunk = 0, version = 0;
    std::uint64_t covers = 0;
  };

  Task<> run() {
    for (;;) {
      const Duration pause(static_cast<std::int64_t>(random_.below(5'000)));
      co_await engine.delay(pause);
      submit();
    }
  }

  void submit() {
    requests_.push_back(std::make_unique<Pending>());
    Pending& p = *requests_.back();
    p.traffic = this;
    p.request.done_context = &p;
    p.request.done = [](Request&, void* context) {
      static_cast<Pending*>(context)->traffic->done(*static_cast<Pending*>(context));
    };
    if (random_.chance(1, 6)) {
      p.request.op = IoOp::flush;
      p.covers = promises.completions;
      device.submit(p.request);
      return;
    }
    // One to three chunks without a write in flight; two bios, as after merging.
    const std::uint64_t count = 1 + random_.below(3);
    p.first_chunk = random_.below(kChunks - count + 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (busy_.contains(p.first_chunk + i)) {
        requests_.pop_back();
        return;
      }
    }
    p.version = ++versions_;
    p.request.op = IoOp::write;
    p.request.flags.fua = random_.chance(1, 4);
    p.request.sector = Sector{p.first_chunk * kChunkSectors};
    for (std::uint64_t i = 0; i < count; ++i) {
      busy_.insert({p.first_chunk + i, p.version});
      promises.started(p.first_chunk + i, p.version);
      Bio bio = Bio::write_block(FsBlock{p.first_chunk + i}, version_block(p.version), {}, {});
      p.request.sectors += bio.sectors;
      p.request.bios.push_back(std::move(bio));
    }
    device.submit(p.request);
  }

  void done(Pending& p) {
    ++promises.completions;
    EXPECT_EQ(promises.completions, device.completed_requests());
    if (p.request.op == IoOp::flush) {
      promises.flushed(p.covers);
      return;
    }
    for (std::uint64_t i = 0; i < p.request.bios.size(); ++i) {
      busy_.erase(p.first_chunk + i);
      promises.completed(p.first_chunk + i, p.version, p.request.flags.fua || !volatile_cache_);
    }
  }

  Random random_;
  bool volatile_cache_;
  std::uint64_t versions_ = 0;
  std::vector<std::unique_ptr<Pending>> requests_;
  std::map<std::uint64_t, std::uint64_t> busy_;
};

std::uint64_t version_at(const BlockStore& image, std::uint64_t chunk, std::uint32_t sector) {
  const BlockRef block = image.read(chunk);
  return get_le<std::uint64_t>(block.bytes(), std::size_t{sector} * 512);
}

class Durability : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Caches, Durability, ::testing::Bool(), [](const auto& cache) {
  return cache.param ? "Volatile" : "WriteThrough";
});

TEST_P(Durability, EveryCrashImageHoldsWhatAFlushCoveredAndNothingThatWasNeverWritten) {
  const std::uint64_t seeds = std::getenv("JBDLAB_LONG") != nullptr ? 2000 : 100;
  std::uint64_t lost = 0, kept = 0, torn = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomTraffic traffic(seed, GetParam());
    Random random = Random(seed).fork("crash");
    for (int cut = 0; cut < 5; ++cut) {
      const Duration more(static_cast<std::int64_t>(random.below(200'000)));
      traffic.engine.run_until(kNever, traffic.engine.now() + more);
      const BlockStore durable = traffic.device.crash_image(Keep::durable);
      const BlockStore some = traffic.device.crash_image(Keep::random, random.next());
      const BlockStore all = traffic.device.crash_image(Keep::completed);
      for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk) {
        std::uint64_t first = 0;
        for (std::uint32_t s = 0; s < kChunkSectors; ++s) {
          ASSERT_EQ(version_at(durable, chunk, s), traffic.promises.durable(chunk).number);
          const std::uint64_t version = version_at(some, chunk, s);
          ASSERT_TRUE(traffic.promises.legal(chunk, version))
              << "chunk " << chunk << " sector " << s << " holds version " << version;
          if (s == 0) first = version;
          torn += version != first ? 1 : 0;
          if (version_at(all, chunk, s) != version_at(durable, chunk, s)) {
            ++(version == version_at(all, chunk, s) ? kept : lost);
          }
        }
      }
    }
  }
  EXPECT_GT(torn, seeds);  // a write in flight is torn on either device
  if (GetParam()) {
    EXPECT_GT(lost, seeds * 10);
    EXPECT_GT(kept, seeds * 10);
  } else {
    EXPECT_EQ(lost + kept, 0U);
  }
}

TEST(Device, ACrashImageIsAFunctionOfItsSeed) {
  RandomTraffic traffic(3, true);
  traffic.engine.run_until(kNever, Time{} + 100us);
  const auto digest = [&](std::uint64_t seed) {
    std::vector<std::byte> bytes(kChunks * kChunk);
    traffic.device.crash_image(Keep::random, seed).read_bytes(0, bytes);
    return bytes;
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

TEST(Device, ACrashImageDoesNotChangeWhenTheDeviceGoesOn) {
  RandomTraffic traffic(3, true);
  traffic.engine.run_until(kNever, Time{} + 100us);
  const BlockStore image = traffic.device.crash_image(Keep::completed);
  std::vector<std::byte> before(kChunks * kChunk), after(kChunks * kChunk), now(kChunks * kChunk);
  image.read_bytes(0, before);
  traffic.engine.run_until(kNever, Time{} + 300us);
  image.read_bytes(0, after);
  traffic.device.contents().read_bytes(0, now);
  EXPECT_EQ(before, after);
  EXPECT_NE(before, now);
}

// A request of one bio, for the tests that need few.
struct OneRequest {
  OneRequest(Device& device, IoOp op, std::uint64_t chunk) {
    request.op = op;
    request.done = [](Request&, void* count) { ++*static_cast<int*>(count); };
    request.done_context = &done;
    if (op != IoOp::flush) {
      request.sector = Sector{chunk * kChunkSectors};
      request.sectors = kChunkSectors;
      Bio bio{.op = op, .sector = request.sector, .sectors = kChunkSectors};
      if (op == IoOp::write) bio.blocks.push_back(version_block(7));
      request.bios.push_back(std::move(bio));
    }
    device.submit(request);
  }
  Request request;
  int done = 0;
};

std::unique_ptr<Device> ram(Engine& engine, const DeviceOptions& options = {}) {
  auto device = make_device("ram", engine, BlockStore(kChunk, kChunks * kChunk), options);
  return std::move(*device);
}

TEST(Device, LogsArrivalCompletionAndFlushEpoch) {
  Engine engine;
  const auto device = ram(engine, {.keep_log = true});
  OneRequest write(*device, IoOp::write, 3);
  OneRequest flush(*device, IoOp::flush, 0);
  engine.run_until(kNever);
  OneRequest read(*device, IoOp::read, 3);
  engine.run_until(kNever, engine.now());
  const auto& log = device->log();
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[0].arrival, 1U);
  EXPECT_EQ(log[0].completion, 1U);
  EXPECT_EQ(log[0].sector, Sector{12});
  EXPECT_EQ(log[0].flush_epoch, 0U);
  EXPECT_EQ(log[0].completed, Time{} + 6us + 1024ns);
  EXPECT_EQ(log[1].op, IoOp::flush);
  EXPECT_EQ(log[1].completed, Time{} + 13us + 1024ns);  // one after the other
  EXPECT_EQ(log[2].flush_epoch, 1U);
  EXPECT_EQ(log[2].completion, 0U);  // in flight
  EXPECT_EQ(device->completed_flushes(), 1U);
}

TEST(Device, ADiscardedChunkReadsAsZeros) {
  Engine engine;
  const auto device = ram(engine);
  OneRequest write(*device, IoOp::write, 3);
  engine.run_until(kNever);
  EXPECT_EQ(version_at(device->contents(), 3, 0), 7U);
  OneRequest discard(*device, IoOp::discard, 3);
  engine.run_until(kNever);
  EXPECT_EQ(version_at(device->contents(), 3, 0), 0U);
}

TEST(Device, NotifiesInTheEventOfTheCompletion) {
  Engine engine;
  const auto device = ram(engine);
  bool cut = false;
  device->notify_after(2, &cut);
  OneRequest one(*device, IoOp::write, 1);
  OneRequest two(*device, IoOp::write, 2);
  OneRequest three(*device, IoOp::write, 3);
  EXPECT_TRUE(engine.run_until(cut));
  EXPECT_EQ(device->completed_requests(), 2U);
  EXPECT_EQ(two.done, 1);
  EXPECT_EQ(version_at(device->contents(), 2, 0), 7U);
  EXPECT_EQ(version_at(device->contents(), 3, 0), 0U);
}

TEST(DeviceKinds, AreFoundByName) {
  Engine engine;
  for (const DeviceKind& kind : device_kinds()) {
    const auto device = make_device(kind.info().name, engine, BlockStore(4096, 1 << 20), {});
    ASSERT_TRUE(device.has_value());
    EXPECT_EQ((*device)->info().name, kind.info().name);
    EXPECT_FALSE((*device)->info().parameters.empty());
    for (const DeviceParameter& p : (*device)->info().parameters) EXPECT_FALSE(p.source.empty());
  }
}

TEST(DeviceKinds, AnUnknownNameIsAnErrorThatListsTheNames) {
  Engine engine;
  const auto device = make_device("floppy", engine, BlockStore(4096, 1 << 20), {});
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, Errc::usage);
  EXPECT_EQ(device.error().what, "no device is called 'floppy'; there are: ram, loop-file");
}

TEST(DeviceKinds, TheFlushOfLoopFileTakesAboutEightTenthsOfAMillisecond) {
  const auto mean_us = [](std::uint64_t seed) {
    const auto cost = loop_file_cost(Random(seed));
    Request flush;
    flush.op = IoOp::flush;
    Time now{};
    for (int i = 0; i < 10'000; ++i) {
      const Time end = cost->completion(flush, now);
      EXPECT_GE(end - now, 285us);
      EXPECT_LT(end - now, 2522us);
      now = end;
    }
    return now.time_since_epoch() / 10'000us;
  };
  EXPECT_NEAR(static_cast<double>(mean_us(1)), 759, 20);
  EXPECT_NE(mean_us(1), mean_us(2));
}

}  // namespace
}  // namespace jbdlab::sim
