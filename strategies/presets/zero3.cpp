// zero3: ZeRO stage 3. Every rank trains its share of the batch and keeps its part of the optimizer
// state, gradients and parameters. Each group of parameters is gathered on use (Rajbhandari et al.
// 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models").
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(
    staged_entry({.name = "zero3",
                  .summary = "optimizer state, gradients and parameters sharded over replicas",
                  .usual_dimensions = {"data"},
                  .shards = schedules::Sharded("parameters")}));

}  // namespace stratagem::presets
