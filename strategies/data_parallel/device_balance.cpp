#include "strategies/data_parallel/device_balance.h"

#include <fmt/format.h>

#include <algorithm>

namespace stratagem::data_parallel {
namespace {

constexpr double least_share = 0.75;

}  // namespace

std::string imbalance_of(const std::vector<backends::DeviceCapacity>& devices) {
  using backends::DeviceCapacity;
  const auto compared = [&](double DeviceCapacity::*member, const char* what) -> std::string {
    if (devices.empty()) return "";
    const auto [least, most] = std::ranges::minmax_element(devices, {}, member);
    if ((*least).*member >= least_share * (*most).*member) return "";
    return fmt::format(
        "{} has {:.0f}% of the {} of {} and slows down each step; leave it out "
        "with --device-ids",
        least->name, 100 * (*least).*member / ((*most).*member), what, most->name);
  };
  std::string found = compared(&DeviceCapacity::memory_bytes, "memory");
  return found.empty() ? compared(&DeviceCapacity::cores, "cores") : found;
}

}  // namespace stratagem::data_parallel
