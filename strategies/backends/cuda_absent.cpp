// The CUDA backend of a build without CUDA.
#include <stdexcept>

#include "strategies/backends/backend.h"

namespace stratagem::backends {

int cuda_device_count() { return 0; }

std::vector<std::string> cuda_identities() { return {}; }

DeviceCapacity cuda_capacity(int /*ordinal*/) { return {}; }

std::unique_ptr<runtime::Device> make_cuda_device(runtime::DeviceDescription /*description*/,
                                                  std::shared_ptr<runtime::Monitor> /*monitor*/,
                                                  runtime::ProgressPage* /*activity*/,
                                                  const std::vector<int>& /*ordinals*/) {
  throw std::invalid_argument(
      "--device cuda: this build has no CUDA; build the cuda preset (./tools/gpu_check does)");
}

}  // namespace stratagem::backends
