// Checks that the ranks of a job will make the same collectives.
#pragma once

#include "strategies/costs.h"
#include "strategies/distributed/rank_context.h"

namespace stratagem::distributed {

/// Throws std::invalid_argument, the same line on all ranks, unless the ranks of each process group
/// make the same calls in the same order. Collective among the job's ranks. They exchange digests
/// over the store or, if those differ, the calls themselves.
void require_same_calls(RankContext& ranks, const strategies::CallLists& own);

}  // namespace stratagem::distributed
