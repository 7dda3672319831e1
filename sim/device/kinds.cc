#include "sim/device/kinds.h"

#include <array>

namespace jbdlab::sim {

std::span<const DeviceKind> device_kinds() noexcept {
  static constexpr std::array kKinds{DeviceKind{&ram_info, &ram_cost},
                                     DeviceKind{&loop_file_info, &loop_file_cost}};
  return kKinds;
}

}  // namespace jbdlab::sim
