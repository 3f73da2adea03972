// ddp: the whole model on every device, one rank each, which trains its share of the batch.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry(
    {.name = "ddp",
     .summary = "the whole model on every rank, gradients all-reduced while the backward pass runs",
     .usual_dimensions = {"data"}}));

}  // namespace stratagem::presets
