// model_parallel: the layers spread over the devices, the whole batch at once, so that one device
// works at a time. It makes room for a larger model, not speed: ideal bubble (p - 1) / p.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry({.name = "model_parallel",
                                 .summary = "layers split over the devices, one works at a time",
                                 .usual_dimensions = {"pipeline"},
                                 .schedule = "naive"}));

}  // namespace stratagem::presets
