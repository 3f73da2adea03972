// tensor_parallel: every layer's matrices shared out over the ranks (Shoeybi et al. 2019,
// "Megatron-LM"). With --mesh also stages inside and replicas across.
#include "strategies/presets/tensor.h"

namespace stratagem::strategies {
namespace {

const StrategyRegistration registration{tensor_entry(
    "tensor_parallel", "every layer shared out over the ranks, which sum what each computes",
    tensor_parallel::Layout::tensor)};

}  // namespace
}  // namespace stratagem::strategies
