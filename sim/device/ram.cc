#include <fmt/format.h>

#include "sim/device/kinds.h"
#include "sim/device/loop_worker.h"

// The device of the recordings whose image lay on tmpfs. Figures: medians over their 11,000 commits
// (off.trace): from the issue of the commit block to the issue of the flush behind it 15 us, from
// that of a flush to that of the commit block 14 us, from a flush bio to its issue 7 us; from the
// issue of the log's request to the commit block's bio 33 us for 2 blocks and 50 us for 10.
namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRequest = 6us;  // 15 us less the hand-off and 2 us for the bytes of a block
constexpr Duration kFlush = 7us;    // 14 us less the hand-off
constexpr Duration kHandOff = 7us;
constexpr std::uint64_t kBytesPerUs = 2000;  // (50 - 33) us for 8 blocks

class RamCost final : public CostModel {
 public:
  Time completion(const Request& request, Time now) override {
    switch (request.op) {
      case IoOp::flush:
        return worker_.serve(now, kFlush);
      case IoOp::discard:
        return worker_.serve(now, kRequest);
      default:
        return worker_.serve(now, kRequest + transfer_time(request.sectors, kBytesPerUs));
    }
  }

 private:
  LoopWorker worker_;
};

}  // namespace

DeviceInfo ram_info() {
  constexpr std::string_view kMedians = "medians of the recorded runs on tmpfs";
  constexpr std::string_view kQueue = "/sys/block/loop0/queue of kernel 6.18";
  DeviceInfo info;
  info.name = "ram";
  info.summary = "loop device on a file in memory: volatile cache, no FUA, flush at once";
  info.volatile_cache = true;
  info.requeue_delay = kHandOff;
  info.parameters = {
      {"request", fmt::format("{}", kRequest.count()), "ns", kMedians},
      {"bandwidth", fmt::format("{}", kBytesPerUs), "MB/s", kMedians},
      {"flush", fmt::format("{}", kFlush.count()), "ns", kMedians},
      {"requeue_delay", fmt::format("{}", kHandOff.count()), "ns", kMedians},
      {"max_sectors", fmt::format("{}", info.max_sectors), "sectors", kQueue},
      {"max_segments", fmt::format("{}", info.max_segments), "segments", kQueue},
      {"volatile_cache", "1", "", kQueue},
      {"fua", "0", "", kQueue},
  };
  return info;
}

std::unique_ptr<CostModel> ram_cost(Random) { return std::make_unique<RamCost>(); }

}  // namespace jbdlab::sim
