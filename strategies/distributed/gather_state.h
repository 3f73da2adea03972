// Combines the ranks' parts of a pipeline's state.
#pragma once

#include <span>
#include <vector>

#include "strategies/distributed/process_group.h"
#include "strategies/state.h"

namespace stratagem::distributed {

/// Returns the entries of all ranks of the group on every rank. Collective. Sends tensors through
/// `device`, which the group's backend must reach.
strategies::StateDictionary gather_state(const strategies::StateDictionary& own,
                                         distributed::ProcessGroup& group,
                                         const at::Device& device);

/// Returns each rank's entries separately, [rank in the group], on every rank.
std::vector<strategies::StateDictionary> gather_states(const strategies::StateDictionary& own,
                                                       distributed::ProcessGroup& group,
                                                       const at::Device& device);

/// Replaces the values by their sums over the ranks, on all ranks. Collective.
void sum_over_ranks(std::span<double> values, distributed::ProcessGroup& group,
                    const at::Device& device);

/// Returns the sum of every rank's number on all ranks. Collective.
double sum_over_ranks(double value, distributed::ProcessGroup& group, const at::Device& device);

}  // namespace stratagem::distributed
