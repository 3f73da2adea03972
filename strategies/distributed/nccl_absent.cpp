// The NCCL backend of a build without NCCL.
#include <stdexcept>

#include "strategies/distributed/process_group.h"

namespace stratagem::distributed {

c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(
    const c10::intrusive_ptr<c10d::Store>& /*store*/, int /*rank*/, int /*size*/,
    const distributed::BackendOptions& /*options*/) {
  throw std::invalid_argument(
      "--backend nccl: this build has no NCCL; build the cuda preset (./tools/gpu_check does)");
}

}  // namespace stratagem::distributed
