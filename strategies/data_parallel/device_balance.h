// Whether the devices of replicas are alike: the step waits for the smallest.
#pragma once

#include <string>
#include <vector>

#include "strategies/backends/backend.h"

namespace stratagem::data_parallel {

/// Names a device with less than 75% of the memory or cores of another, as nn.DataParallel does
/// (_check_balance of PyTorch 2.11); empty where there is none.
std::string imbalance_of(const std::vector<backends::DeviceCapacity>& devices);

}  // namespace stratagem::data_parallel
