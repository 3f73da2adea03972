// Whether a step communicates what its strategy says that it does.
#pragma once

#include <string>

#include "strategies/costs.h"
#include "strategies/distributed/process_group.h"

namespace stratagem::distributed {

/// The first collective of which a step made other calls, or moved other payload bytes, than
/// Costs::collectives says: "all_reduce: 4 calls and 96 bytes a step, by formula 3 calls and 72
/// bytes". Empty where all agree. Barriers, which belong to no step, do not count.
std::string difference_from_costs(const distributed::CommunicationCounts& counted,
                                  const strategies::Costs& costs);

}  // namespace stratagem::distributed
