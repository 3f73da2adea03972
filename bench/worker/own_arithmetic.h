// The second verdict: checks the row's layers and its step in the number format and on the kernels
// that are timed. The first one, in float64, does not see a kernel that is wrong only in float32.
#pragma once

#include "bench/config/config.h"
#include "bench/worker/tasks.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Returns the verdict of all ranks together; collective.
reports::Verdict verify_own_arithmetic(const Config& row, const TaskContext& context);

/// Returns the rank's verdict that is furthest beyond its bound, or nearest to it. Collective.
reports::Verdict worst_of_ranks(const TaskContext& context, const reports::Verdict& own);

}  // namespace stratagem::bench
