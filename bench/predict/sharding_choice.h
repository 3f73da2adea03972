// Which window and which resharding of a sharded row fit into memory, and what they cost.
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

/// Choices of a row whose layers have groups, the fastest first: windows of up to four uses, and,
/// where parameters are sharded, resharding.
std::vector<ShardingChoice> sharding_choices(const Config& config, const StageCosts& calibration);

/// The row as chosen.
Config with_choice(Config config, const ShardingChoice& choice);

}  // namespace stratagem::bench
