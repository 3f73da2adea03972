// What the presets that shard over replicas have in common.
#pragma once

#include <string>

#include "strategies/registry.h"

namespace stratagem::presets {

/// `shards`: optimizer, gradients or parameters.
strategies::StrategyEntry zero_entry(std::string name, std::string summary, std::string shards);

}  // namespace stratagem::presets
