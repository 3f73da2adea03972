// The CUDA and NCCL backends of a build without CUDA.
#include <stdexcept>

#include "strategies/runtime/backend.h"
#include "strategies/runtime/process_group.h"

namespace stratagem::runtime {

int cuda_device_count() { return 0; }

std::unique_ptr<Device> make_cuda_device(DeviceDescription /*description*/,
                                         std::shared_ptr<Monitor> /*monitor*/,
                                         ActivityBoard* /*activity*/) {
  throw std::invalid_argument(
      "--device cuda: this build has no CUDA; build the cuda preset (./tools/gpu_check does)");
}

c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(
    const c10::intrusive_ptr<c10d::Store>& /*store*/, int /*rank*/, int /*size*/,
    const BackendOptions& /*options*/) {
  throw std::invalid_argument(
      "--backend nccl: this build has no NCCL; build the cuda preset (./tools/gpu_check does)");
}

}  // namespace stratagem::runtime
