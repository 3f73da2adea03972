// context_parallel: each rank has a part of the positions of every sample. Layers are whole; only
// attention exchanges (strategies/context_parallel).
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(
    staged_entry({.name = "context_parallel",
                  .summary = "every sample's positions shared by the ranks, which exchange what "
                             "attention needs",
                  .usual_dimensions = {"context"}}));

}  // namespace stratagem::presets
