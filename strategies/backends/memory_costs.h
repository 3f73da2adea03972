// Compares the memory of devices with their strategy's formula.
#pragma once

#include <string>
#include <vector>

#include "strategies/costs.h"
#include "strategies/runtime/device.h"

namespace stratagem::backends {

/// Returns the first difference between the peaks since their reset and Costs::memory, of
/// parameters, gradients and the optimizer's state: "cpu:1: gradients took 96 bytes at most, by
/// formula 72". Returns an empty string if all agree or there is no formula, and skips devices
/// whose allocator does not account by category.
std::string difference_from_costs(runtime::DeviceSpan devices,
                                  const std::vector<strategies::StateBytes>& formula);

}  // namespace stratagem::backends
