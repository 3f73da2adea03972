// One state of all stages from the parts that the ranks of a pipeline hold.
#pragma once

#include <span>
#include <vector>

#include "strategies/distributed/process_group.h"
#include "strategies/state.h"

namespace stratagem::distributed {

/// The entries of all ranks of the group, on every one of them. Collective. Tensors are sent
/// through `device`, where the group's backend can reach them.
strategies::StateDictionary gather_state(const strategies::StateDictionary& own,
                                         distributed::ProcessGroup& group,
                                         const at::Device& device);

/// Those of each rank by itself, [rank in the group], on every one of them.
std::vector<strategies::StateDictionary> gather_states(const strategies::StateDictionary& own,
                                                       distributed::ProcessGroup& group,
                                                       const at::Device& device);

/// The sums of the ranks' numbers, in their place, on all ranks. Collective.
void sum_over_ranks(std::span<double> values, distributed::ProcessGroup& group,
                    const at::Device& device);

/// The sum of every rank's number, on all ranks. Collective.
double sum_over_ranks(double value, distributed::ProcessGroup& group, const at::Device& device);

}  // namespace stratagem::distributed
