// pipeline: the layers spread over the devices and the batch cut into micro-batches, so that the
// devices work at the same time. A schedule orders the work.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(
    staged_entry({.name = "pipeline",
                  .summary = "layers split over the devices, micro-batches keep them all at work",
                  .usual_dimensions = {"pipeline"}}));

}  // namespace stratagem::presets
