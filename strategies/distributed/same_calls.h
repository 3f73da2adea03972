// Whether the ranks of a job are about to make the same collectives.
#pragma once

#include "strategies/costs.h"
#include "strategies/distributed/rank_context.h"

namespace stratagem::distributed {

/// Throws std::invalid_argument, the same line on all ranks, where the ranks of a process group do
/// not all make the same calls in the same order. Collective among the job's ranks, over the store:
/// digests or, where those differ, the calls themselves.
void require_same_calls(RankContext& ranks, const strategies::CallLists& own);

}  // namespace stratagem::distributed
