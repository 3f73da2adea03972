// The CUDA backend of a build without CUDA.
#include <stdexcept>

#include "strategies/runtime/backend.h"

namespace stratagem::runtime {

int cuda_device_count() { return 0; }

std::unique_ptr<Device> make_cuda_device(DeviceDescription /*description*/,
                                         std::shared_ptr<Monitor> /*monitor*/,
                                         ActivityBoard* /*activity*/) {
  throw std::invalid_argument(
      "--device cuda: this build has no CUDA; build the cuda preset (./tools/gpu_check does)");
}

}  // namespace stratagem::runtime
