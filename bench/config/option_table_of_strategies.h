// The part of the table of options that says how strategies cut, replicate and share their work.
#pragma once

#include <vector>

#include "bench/config/options.h"
#include "strategies/runtime/device.h"

namespace stratagem::bench {

inline constexpr double most_devices = runtime::most_devices;
inline constexpr Bounds positive_count = {1};
inline constexpr Bounds more_than_zero = {.low = 0, .low_excluded = true};
inline constexpr Bounds zero_or_more = {0};

std::vector<Option> options_of_strategies();

}  // namespace stratagem::bench
