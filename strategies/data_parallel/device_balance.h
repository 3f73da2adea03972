// Compares the devices of replicas: a step waits for the smallest.
#pragma once

#include <string>
#include <vector>

#include "strategies/backends/backend.h"

namespace stratagem::data_parallel {

/// Returns a warning about a device with less than 75% of another's memory or cores, like
/// nn.DataParallel (_check_balance of PyTorch 2.11), or an empty string.
std::string imbalance_of(const std::vector<backends::DeviceCapacity>& devices);

}  // namespace stratagem::data_parallel
