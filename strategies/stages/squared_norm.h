// Sums the squared norms of the stages' gradients in a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "strategies/runtime/device.h"

namespace stratagem::stages {

/// Returns the sum [1] (float64) of scalars that may be on several devices, added in order on the
/// queue of `device`; undefined ones are skipped. The host does not wait.
at::Tensor sum_on(const runtime::DeviceDescription& device, const std::vector<at::Tensor>& parts);

/// A step's number on a device, which the host reads once.
class NumberReadOnce {
 public:
  /// Returns the number in the first caller's `find`; other callers wait for its read.
  double read(const std::function<at::Tensor()>& find);

 private:
  std::mutex mutex_;
  std::optional<double> number_;
};

}  // namespace stratagem::stages
