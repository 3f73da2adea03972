#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"

namespace stratagem::backends {

at::Device torch_device(const runtime::DeviceDescription& description) {
  if (description.kind == runtime::DeviceKind::cpu) return at::Device(at::kCPU);
  return {at::kCUDA, static_cast<at::DeviceIndex>(description.ordinal)};
}

void mark_used(const at::Tensor& tensor) {
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  guard.recordDataPtrOnStream(tensor.storage().data_ptr(), guard.getStream(tensor.device()));
}

void finish(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return;
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  guard.synchronizeStream(guard.getStream(tensor.device()));
}

at::Tensor copy_to(const at::Tensor& source, const runtime::DeviceDescription& target) {
  const MemoryCategoryGuard staging(MemoryCategory::staging);
  const at::Tensor detached = source.detach();
  mark_used(detached);
  if (target.kind == runtime::DeviceKind::cpu && detached.is_cpu()) return detached.clone();
  return detached.to(torch_device(target), detached.scalar_type(), /*non_blocking=*/true,
                     /*copy=*/true);
}

}  // namespace stratagem::backends
