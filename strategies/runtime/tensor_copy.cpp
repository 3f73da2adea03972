#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "strategies/runtime/backend.h"

namespace stratagem::runtime {

at::Device torch_device(const DeviceDescription& description) {
  if (description.kind == DeviceKind::cpu) return at::Device(at::kCPU);
  return {at::kCUDA, static_cast<at::DeviceIndex>(description.ordinal)};
}

void mark_used(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return;
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  tensor.record_stream(guard.getStream(tensor.device()));
}

at::Tensor copy_to(const at::Tensor& source, const DeviceDescription& target) {
  const at::Tensor detached = source.detach();
  mark_used(detached);
  if (target.kind == DeviceKind::cpu && detached.is_cpu()) return detached.clone();
  return detached.to(torch_device(target), detached.scalar_type(), /*non_blocking=*/true,
                     /*copy=*/true);
}

}  // namespace stratagem::runtime
