// The samples of a row: what its statistics are made of.
//
// A sample is one timed step; under the tutorial's protocol it is a whole training call, the sum
// of its steps.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/record.h"

namespace stratagem::reports {

/// Whether the row's samples are whole calls.
bool samples_are_calls(const Row& row);

/// Milliseconds; empty for a repetition that failed.
std::vector<double> samples_of(const Repetition& repetition, bool calls);

/// By repetition, the steps whose sample lies beyond the fences of all the row's samples, as places
/// in `step_ms`; a call that lies beyond them has all of its steps there.
std::vector<std::vector<std::size_t>> outlying_steps(const Row& row);

}  // namespace stratagem::reports
