// Process groups over NCCL. c10d's header needs NCCL's own, which only this file sees.
#include <fmt/format.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "strategies/distributed/process_group.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {

c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options) {
  const auto settings = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
  // c10d counts from the call, which may be many steps ahead of the GPU. The effective limit is
  // that of the wait for the device.
  settings->timeout = std::max<std::chrono::milliseconds>(options.timeout, std::chrono::hours(24));
  try {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
    const auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, settings);
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, backend);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
    return group;
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(fmt::format("rank {} of {} cannot reach the others: {}", rank,
                                                  size, runtime::first_line(error)));
  }
}

}  // namespace stratagem::distributed
