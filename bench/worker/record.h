// What a launch's timed steps leave in the results: one repetition of a row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Of all ranks; breakdowns are means over the steps, the timeline is the median step's.
/// `peak_gflops`: of each device, where it is known. `operators`: how many ATen operators this rank
/// calls in a step, where that was counted. Collective. Throws std::runtime_error where the steps
/// communicated different amounts.
reports::Repetition record_of(const Session& session, const TaskContext& context,
                              const TimedRun& run, std::optional<double> peak_gflops,
                              const std::optional<std::int64_t>& operators);

/// Every rank's part of the trace. Collective.
std::vector<reports::TimelineEvent> trace_of(const Session& session, const TaskContext& context,
                                             const TimedRun& run);

/// The step whose duration is the (lower) median.
std::size_t median_step(const std::vector<double>& durations);

}  // namespace stratagem::bench
