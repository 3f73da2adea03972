// zero1: ZeRO stage 1. Every rank trains its share of the batch and keeps its part of the optimizer
// state (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models").
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(
    staged_entry({.name = "zero1",
                  .summary = "optimizer state, and the update, sharded over replicas",
                  .usual_dimensions = {"data"},
                  .shards = schedules::Sharded("optimizer")}));

}  // namespace stratagem::presets
