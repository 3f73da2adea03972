// Process groups over NCCL. c10d's header needs NCCL's own, which only this file sees.
#include <fmt/format.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "strategies/distributed/process_group.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {

c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options) {
  if (!options.interface_name.empty()) {
    ::setenv("NCCL_SOCKET_IFNAME", options.interface_name.c_str(), /*overwrite=*/1);
  }
  const auto settings = c10d::ProcessGroupNCCL::Options::create();
  settings->timeout = options.timeout;
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
