// What a run of steps called, as what one step calls: an exact metric, so every step calls the
// same.
#pragma once

#include <cstdint>

#include "strategies/costs.h"

namespace stratagem::bench {

/// Throws std::runtime_error where a count is no multiple of `steps`: rounded, a call that only
/// some steps make would vanish.
strategies::CommunicationCounts per_step(const strategies::CommunicationCounts& counts,
                                         std::int64_t steps);

}  // namespace stratagem::bench
