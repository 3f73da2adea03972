// eager_pipeline: the layers spread over the devices, always by the schedule eager_1f1b.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry({.name = "eager_pipeline",
                                 .summary = "a pipeline whose transfers are a micro-batch ahead",
                                 .usual_dimensions = {"pipeline"},
                                 .schedule = "eager_1f1b"}));

}  // namespace stratagem::presets
