// tensor_parallel: every layer's matrices sharded over the ranks (Shoeybi et al. 2019,
// "Megatron-LM"). With --mesh also stages inside and replicas across.
#include "strategies/presets/tensor.h"

namespace stratagem::presets {
namespace {

const strategies::StrategyRegistration tensor_parallel_registration{tensor_entry(
    "tensor_parallel", "every layer sharded over the ranks, which sum what each computes",
    tensor_parallel::Layout::tensor)};

}  // namespace
}  // namespace stratagem::presets
