// tensor_parallel: every layer's matrices sharded over the ranks (Shoeybi et al. 2019,
// "Megatron-LM"). --mesh adds stages inside and replicas across.
#include "strategies/presets/staged.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(
    staged_entry({.name = "tensor_parallel",
                  .summary = "every layer sharded over the ranks, which sum what each computes",
                  .usual_dimensions = {"tensor"}}));

}  // namespace stratagem::presets
