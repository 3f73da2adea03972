// Predicts the cost of the windows and reshardings of a sharded row that fit into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/predict/predict.h"

namespace stratagem::bench {

struct ShardingChoice {
  std::int64_t prefetch = 1;          // --prefetch-groups
  bool reshard_after_forward = true;  // --no-reshard-after-forward
  Prediction predicted = {};
};

/// Returns the choices of a row whose layers have groups, the fastest first: windows of up to four
/// uses, and resharding if parameters are sharded.
std::vector<ShardingChoice> sharding_choices(const Config& config, const StageCosts& calibration);

/// Returns the row with the choice.
Config with_choice(Config config, const ShardingChoice& choice);

}  // namespace stratagem::bench
