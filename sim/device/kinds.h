#pragma once

#include <memory>

#include "sim/device/device.h"

// The kinds of devices, one .cc each; device_kinds() lists them.
namespace jbdlab::sim {

// A loop device on a file in memory: flush at once.
DeviceInfo ram_info();
std::unique_ptr<CostModel> ram_cost(Random stream);

// A loop device on a file on a virtual disk: flush about 0.8 ms.
DeviceInfo loop_file_info();
std::unique_ptr<CostModel> loop_file_cost(Random stream);

}  // namespace jbdlab::sim
