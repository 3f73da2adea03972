// Placement: how a row's devices are spread over processes, from what its strategy says of itself.
#pragma once

#include <string>

#include "bench/config.h"

namespace stratagem::bench {

/// Processes of the row.
int ranks_of(const Config& config);

/// Devices of the job that the row uses; the first where its strategy is for one device.
int devices_of(const Config& config);

/// Parts that the model is cut into.
int stages_of(const Config& config);

/// "data=2/pipeline=1/tensor=1".
std::string mesh_of(const Config& config);

}  // namespace stratagem::bench
