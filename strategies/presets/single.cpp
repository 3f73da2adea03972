// single: the whole model and the whole batch on one device, with which other strategies are
// compared.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry(
    {.name = "single", .summary = "the whole model on one device", .usual_dimensions = {}}));

}  // namespace stratagem::presets
