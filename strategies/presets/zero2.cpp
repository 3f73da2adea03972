// zero2: ZeRO stage 2. Every rank trains its share of the batch and keeps its part of the optimizer
// state and gradients (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models").
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry({.name = "zero2",
                                 .summary = "optimizer state and gradients sharded over replicas",
                                 .usual_dimensions = {"data"},
                                 .shards = schedules::Sharded("gradients")}));

}  // namespace stratagem::presets
