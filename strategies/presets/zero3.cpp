// zero3: ZeRO stage 3. Every rank trains its share of the batch, and keeps its part of optimizer
// state, gradients and parameters, each group of which is gathered when it is used (Rajbhandari et
// al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models").
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(
    staged_entry({.name = "zero3",
                  .summary = "optimizer state, gradients and parameters sharded over replicas",
                  .usual_dimensions = {"data"},
                  .shards = schedules::Sharded("parameters")}));

}  // namespace stratagem::presets
