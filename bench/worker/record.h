// Turns a launch's timed steps into one repetition of a row in the results.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/predict/memory_watch.h"
#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Covers all ranks; breakdowns are means over the steps, the timeline is the median step's.
/// `peak_gflops`: of each device, if known. `operators`: the ATen operators that this rank calls in
/// a step, if counted. Collective. Throws std::runtime_error if the steps communicated different
/// amounts.
reports::Repetition record_of(const Session& session, const TaskContext& context,
                              const TimedRun& run, std::optional<double> peak_gflops,
                              const std::optional<std::int64_t>& operators);

/// Returns every rank's part of the trace. Collective.
std::vector<reports::TimelineEvent> trace_of(const Session& session, const TaskContext& context,
                                             const TimedRun& run);

/// Returns every rank's memory during a step, from the marks of its devices. Collective.
std::vector<reports::MemoryCurve> memory_curve_of(
    const Session& session, const TaskContext& context, const schedules::Execution& step,
    const std::vector<std::vector<MemoryMark>>& marks);

/// Returns the step whose duration is the (lower) median.
std::size_t median_step(const std::vector<double>& durations);

}  // namespace stratagem::bench
