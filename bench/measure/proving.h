// The verdict on the timed steps themselves, when a row's launches are done.
#pragma once

#include <optional>
#include <vector>

#include "bench/measure/measure.h"
#include "bench/measure/preparation.h"
#include "bench/proof/evidence.h"

namespace stratagem::bench {

/// Of each launch a verdict, or why there is none.
struct Proofs {
  std::vector<reports::Verdict> verdicts;
  std::optional<reports::Error> error;
};

/// Holds a row's launches against the steps of one device, and on CPUs against one another. The
/// reference is computed once for all rows of a workload that normalise the same samples together,
/// and kept in the cache. Throws Interrupted.
Proofs prove(const PreparedRow& row, const std::vector<Evidence>& launches,
             const MeasureEnvironment& environment);

}  // namespace stratagem::bench
