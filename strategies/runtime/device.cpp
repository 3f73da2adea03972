#include "strategies/runtime/device.h"

#include <fmt/format.h>

namespace stratagem::runtime {

std::string DeviceDescription::name() const {
  return kind == DeviceKind::cuda ? fmt::format("cuda:{}", ordinal) : fmt::format("cpu:{}", index);
}

void synchronize_all(DeviceSpan devices, std::chrono::milliseconds limit) {
  for (const auto& device : devices) device->synchronize(limit);
}

}  // namespace stratagem::runtime
