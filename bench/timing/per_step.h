// Divides the calls of several steps into those of one step: an exact metric, so every step calls
// the same.
#pragma once

#include <cstdint>

#include "strategies/costs.h"

namespace stratagem::bench {

/// Throws std::runtime_error if a count is not a multiple of `steps`: rounding would hide a call
/// that only some steps make.
strategies::CommunicationCounts per_step(const strategies::CommunicationCounts& counts,
                                         std::int64_t steps);

}  // namespace stratagem::bench
