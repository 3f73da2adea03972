// The second verdict: the row's layers and its step in the number format and on the kernels that
// are timed. The first one, in float64, does not see a kernel that is wrong in float32 alone.
#pragma once

#include "bench/config/config.h"
#include "bench/worker/tasks.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Of all ranks together; collective.
reports::Verdict verify_own_arithmetic(const Config& row, const TaskContext& context);

/// Of what each rank has found, what is furthest beyond its bound, or nearest to it. Collective.
reports::Verdict worst_of_ranks(const TaskContext& context, const reports::Verdict& own);

}  // namespace stratagem::bench
