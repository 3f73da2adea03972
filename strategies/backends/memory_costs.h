// Whether devices held what their strategy says that they do.
#pragma once

#include <string>
#include <vector>

#include "strategies/costs.h"
#include "strategies/runtime/device.h"

namespace stratagem::backends {

/// The first device, and of parameters, gradients and the optimizer's state the first, of which it
/// held at most another number of bytes since its peaks were reset than Costs::memory says: "cpu:1:
/// gradients took 96 bytes at most, by formula 72". Empty where all agree, where there is no
/// formula, and of devices whose allocator keeps no account of categories.
std::string difference_from_costs(runtime::DeviceSpan devices,
                                  const std::vector<strategies::StateBytes>& formula);

}  // namespace stratagem::backends
