// The kernel's limits on this process's share of processor time (control groups, versions 1 and 2).
//
// A group's limit holds for everything below it, so the groups above this process's are read too.
// In a container the groups above its own cannot be seen, and neither can their limits.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/machine/machine.h"

namespace stratagem::bench {

/// Returns the processors' worth of time that this process may use; none without a limit.
std::optional<double> limited_cores(const SystemPaths& paths = {});

/// Returns the number of periods in which a limit has stopped this process's groups.
std::int64_t limited_periods(const SystemPaths& paths = {});

}  // namespace stratagem::bench
