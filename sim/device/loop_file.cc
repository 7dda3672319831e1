#include <fmt/format.h>

#include <array>

#include "sim/device/kinds.h"
#include "sim/device/loop_worker.h"

// The device of the recordings whose image lay on a file system of a virtual disk: nine runs with
// several threads. Medians: from the issue of the commit block to that of the flush behind it 36
// us, from a flush bio to its issue 10 us; from the issue of the log's request to the commit
// block's bio 67 us for 6 blocks and 79 us for 16. A flush takes what fsync of the file below
// takes: quantiles of 1963 flushes of both variants, cut off at the 80th percentile, above which
// other load on that machine shows (times of several ms that come in stretches).
namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRequest = 24us;  // 36 us less the hand-off and 2 us for the bytes of a block
constexpr Duration kHandOff = 10us;
constexpr std::uint64_t kBytesPerUs = 3400;  // (79 - 67) us for 10 blocks

// Every fifth percentile from the 5th to the 80th; values between two are equally likely.
constexpr std::array<std::int64_t, 16> kFlushUs{285, 347, 397, 440, 475, 504,  536,  567,
                                                607, 652, 724, 829, 975, 1232, 1619, 2522};

class LoopFileCost final : public CostModel {
 public:
  explicit LoopFileCost(Random stream) noexcept : random_(stream) {}

  Time completion(const Request& request, Time now) override {
    switch (request.op) {
      case IoOp::flush:
        return worker_.serve(now, draw_flush());
      case IoOp::discard:
        return worker_.serve(now, kRequest);
      default:
        return worker_.serve(now, kRequest + transfer_time(request.sectors, kBytesPerUs));
    }
  }

 private:
  Duration draw_flush() noexcept {
    const std::size_t i = random_.below(kFlushUs.size() - 1);
    const std::int64_t low = kFlushUs[i] * 1000;
    const auto span = static_cast<std::uint64_t>(kFlushUs[i + 1] * 1000 - low);
    return Duration(low + static_cast<std::int64_t>(random_.below(span)));
  }

  Random random_;
  LoopWorker worker_;
};

}  // namespace

DeviceInfo loop_file_info() {
  constexpr std::string_view kMedians = "medians of the recorded runs on disk";
  constexpr std::string_view kQueue = "/sys/block/loop0/queue of kernel 6.18";
  DeviceInfo info;
  info.name = "loop-file";
  info.summary =
      "loop device on a file on a virtual disk: volatile cache, no FUA, flush about 0.8 ms";
  info.volatile_cache = true;
  info.requeue_delay = kHandOff;
  std::string quantiles;
  for (const std::int64_t us : kFlushUs)
    quantiles += fmt::format("{}{}", quantiles.empty() ? "" : " ", us);
  info.parameters = {
      {"request", fmt::format("{}", kRequest.count()), "ns", kMedians},
      {"bandwidth", fmt::format("{}", kBytesPerUs), "MB/s", kMedians},
      {"flush", quantiles, "us", "every 5th percentile, 5 to 80, of 1963 recorded flushes on disk"},
      {"requeue_delay", fmt::format("{}", kHandOff.count()), "ns", kMedians},
      {"max_sectors", fmt::format("{}", info.max_sectors), "sectors", kQueue},
      {"max_segments", fmt::format("{}", info.max_segments), "segments", kQueue},
      {"volatile_cache", "1", "", kQueue},
      {"fua", "0", "", kQueue},
  };
  return info;
}

std::unique_ptr<CostModel> loop_file_cost(Random stream) {
  return std::make_unique<LoopFileCost>(stream);
}

}  // namespace jbdlab::sim
