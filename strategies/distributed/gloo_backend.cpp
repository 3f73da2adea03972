// Process groups over Gloo. c10d's header needs Gloo's own, which only this file sees.
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "strategies/distributed/process_group.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {
namespace {

/// By the option, or by the variable that PyTorch's users know; empty: the loopback.
std::string chosen_interface(const std::string& name) {
  const char* variable = std::getenv("GLOO_SOCKET_IFNAME");
  return !name.empty() ? name : variable != nullptr ? variable : "";
}

std::shared_ptr<::gloo::transport::Device> open_interface(const std::string& name) {
  const std::string chosen = chosen_interface(name);
  try {
    if (chosen.empty()) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    return c10d::ProcessGroupGloo::createDeviceForInterface(chosen);
  } catch (const std::exception& error) {
    throw std::invalid_argument(fmt::format("--interface: Gloo cannot use \"{}\": {}",
                                            chosen.empty() ? "127.0.0.1" : chosen,
                                            runtime::first_line(error)));
  }
}

}  // namespace

bool gloo_takes_the_loopback(const BackendOptions& options) {
  const std::string chosen = chosen_interface(options.interface_name);
  return chosen.empty() || chosen == "lo";
}

c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options) {
  const auto settings = c10d::ProcessGroupGloo::Options::create(options.timeout);
  settings->devices = {open_interface(options.interface_name)};
  try {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
    const auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, settings);
    for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
      group->setBackend(device, c10d::ProcessGroup::BackendType::GLOO, backend);
    }
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    return group;
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(fmt::format("rank {} of {} cannot reach the others: {}", rank,
                                                  size, runtime::first_line(error)));
  }
}

}  // namespace stratagem::distributed
