#include "strategies/stages/squared_norm.h"

#include <ATen/ATen.h>

#include "strategies/backends/backend.h"

namespace stratagem::stages {

at::Tensor sum_on(const runtime::DeviceDescription& device, const std::vector<at::Tensor>& parts) {
  const at::Tensor sum =
      at::zeros({1}, at::TensorOptions(backends::torch_device(device)).dtype(at::kDouble));
  for (const at::Tensor& part : parts) {
    if (part.defined()) sum.add_(backends::copy_to(part, device));
  }
  return sum;
}

double NumberReadOnce::read(const std::function<at::Tensor()>& find) {
  const std::lock_guard lock(mutex_);
  if (!number_) number_ = find().item<double>();
  return *number_;
}

}  // namespace stratagem::stages
