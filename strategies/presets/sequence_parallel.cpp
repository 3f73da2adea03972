// sequence_parallel: tensor parallelism whose activations between the shared layers are parts along
// the sequence, so that normalisations and residual sums are sharded too (Korthikanti et al.
// 2022, "Reducing Activation Recomputation in Large Transformer Models").
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(staged_entry(
    {.name = "sequence_parallel",
     .summary = "tensor parallelism that also shards what lies between its layers, by position",
     .usual_dimensions = {"tensor"},
     .layout = tensor_parallel::Layout::sequence}));

}  // namespace stratagem::presets
