// Process groups over Gloo. c10d's header needs Gloo's own, which only this file sees.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "strategies/distributed/network_interface.h"
#include "strategies/distributed/process_group.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {
namespace {

/// Returns the error without LibTorch's prefix: "[enforce fail at FILE:LINE] CONDITION. ".
std::string reason_of(const std::exception& error) {
  std::string text = runtime::first_line(error);
  const auto end = text.rfind(". ");
  return text.starts_with("[enforce fail") && end != std::string::npos ? text.substr(end + 2)
                                                                       : text;
}

struct Interface {
  std::string name;    // empty: the loopback
  std::string choice;  // the option or variable that names it
};

/// Returns the option's interface, or that of the variable that PyTorch users know.
Interface chosen_interface(const std::string& by_option) {
  if (!by_option.empty()) return {by_option, "--interface " + by_option};
  const char* variable = std::getenv("GLOO_SOCKET_IFNAME");
  if (variable == nullptr || *variable == '\0') return {};
  return {variable, fmt::format("GLOO_SOCKET_IFNAME={}", variable)};
}

std::vector<std::string> interfaces_here() {
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> all(
      ::if_nameindex(), &::if_freenameindex);
  std::vector<std::string> names;
  for (const auto* entry = all.get(); entry != nullptr && entry->if_name != nullptr; ++entry) {
    names.emplace_back(entry->if_name);
  }
  return names;
}

std::shared_ptr<::gloo::transport::Device> open_device(const Interface& interface) {
  try {
    if (interface.name.empty()) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface.name);
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(
        fmt::format("Gloo cannot use {}: {}",
                    interface.name.empty() ? "the loopback" : interface.choice, reason_of(error)));
  }
}

}  // namespace

void require_interface(const std::string& by_option) {
  const Interface chosen = chosen_interface(by_option);
  if (chosen.name.empty() || ::if_nametoindex(chosen.name.c_str()) != 0) return;
  throw std::invalid_argument(fmt::format("{}: this network interface does not exist; choices: {}",
                                          chosen.choice, fmt::join(interfaces_here(), ", ")));
}

bool gloo_takes_the_loopback(const BackendOptions& options) {
  const std::string chosen = chosen_interface(options.interface_name).name;
  return chosen.empty() || chosen == "lo";
}

/// Waits until every rank has all its connections. A rank that dropped its group earlier would
/// close a connection that another rank has not seen yet (pytorch pull request 61396).
void await_connections(c10d::Store& store, int rank, int size, std::chrono::milliseconds limit) {
  const auto key = [](int of) { return fmt::format("connected/{}", of); };
  store.set(key(rank), std::string("1"));
  std::vector<std::string> all;
  for (int each = 0; each < size; ++each) all.push_back(key(each));
  store.wait(all, limit);
}

c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       const BackendOptions& options) {
  const auto settings = c10d::ProcessGroupGloo::Options::create(options.timeout);
  require_interface(options.interface_name);
  settings->devices = {open_device(chosen_interface(options.interface_name))};
  try {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
    const auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, settings);
    await_connections(*store, rank, size, options.timeout);
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
