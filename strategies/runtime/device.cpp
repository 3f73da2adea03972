#include "strategies/runtime/device.h"

#include <fmt/format.h>

#include <exception>

namespace stratagem::runtime {

std::string DeviceDescription::name() const {
  return kind == DeviceKind::cuda ? fmt::format("cuda:{}", ordinal) : fmt::format("cpu:{}", index);
}

void synchronize_all(DeviceSpan devices, std::chrono::milliseconds limit) {
  std::exception_ptr first;
  for (const auto& device : devices) {
    try {
      device->synchronize(limit);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace stratagem::runtime
