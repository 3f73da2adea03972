// One state of all stages from the parts that the ranks of a pipeline hold.
#pragma once

#include <vector>

#include "strategies/runtime/process_group.h"
#include "strategies/strategy.h"

namespace stratagem::strategies {

/// The entries of all ranks of the group, on every one of them. Collective. Tensors travel through
/// `device`, where the group's backend can reach them.
StateDictionary gather_state(const StateDictionary& own, runtime::ProcessGroup& group,
                             const at::Device& device);

/// Those of each rank by itself, [rank in the group], on every one of them.
std::vector<StateDictionary> gather_states(const StateDictionary& own, runtime::ProcessGroup& group,
                                           const at::Device& device);

/// The sum of every rank's number, on all ranks. Collective.
double sum_over_ranks(double value, runtime::ProcessGroup& group, const at::Device& device);

}  // namespace stratagem::strategies
