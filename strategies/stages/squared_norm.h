// The squared norm of a step's gradients, from the parts that its stages have.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "strategies/runtime/device.h"

namespace stratagem::stages {

/// The sum [1] (float64) of scalars that may lie on several devices, added up in their order on the
/// queue of `device`; undefined ones are skipped. The host waits for nothing.
at::Tensor sum_on(const runtime::DeviceDescription& device, const std::vector<at::Tensor>& parts);

/// A number of a step that lies on a device, and that the host reads once.
class NumberReadOnce {
 public:
  /// That of the tensor, which the first caller's `find` returns; the others wait for its read.
  double read(const std::function<at::Tensor()>& find);

 private:
  std::mutex mutex_;
  std::optional<double> number_;
};

}  // namespace stratagem::stages
