// ddp_model_parallel: every rank spreads the layers over its own devices, and gradients are summed
// across the ranks. The schedule "naive" is plain model parallelism inside a rank, any other a
// pipeline of micro-batches.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry(
    {.name = "ddp_model_parallel",
     .summary = "layers split over the devices of a rank, gradients summed across the ranks",
     .usual_dimensions = {"data", "pipeline"}}));

}  // namespace stratagem::presets
