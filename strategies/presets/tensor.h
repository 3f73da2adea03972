// What the two presets that share layers have in common.
#pragma once

#include <string>

#include "strategies/registry.h"
#include "strategies/tensor_parallel/layout.h"

namespace stratagem::presets {

strategies::StrategyEntry tensor_entry(std::string name, std::string summary,
                                       tensor_parallel::Layout layout);

}  // namespace stratagem::presets
