// Compares a step's communication with its strategy's formula.
#pragma once

#include <string>

#include "strategies/costs.h"
#include "strategies/distributed/process_group.h"

namespace stratagem::distributed {

/// Returns the first collective whose calls or payload bytes in a step differ from
/// Costs::collectives: "all_reduce: 4 calls and 96 bytes a step, by formula 3 calls and 72 bytes".
/// Returns an empty string if all agree. Barriers, which belong to no step, do not count.
std::string difference_from_costs(const distributed::CommunicationCounts& counted,
                                  const strategies::Costs& costs);

}  // namespace stratagem::distributed
