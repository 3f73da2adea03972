// What a launch's timed steps leave in the results: one repetition of a row.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "bench/task_session.h"
#include "bench/task_timed_run.h"
#include "reports/record.h"

namespace stratagem::bench {

/// Of all ranks; breakdowns are means over the steps, the timeline is the median step's.
/// `operators`: how many ATen operators this rank calls in a step, where that was counted.
/// Collective.
reports::Repetition record_of(const Session& session, const TaskContext& context,
                              const TimedRun& run, const nlohmann::json& job,
                              const std::optional<std::int64_t>& operators);

/// Every rank's part of the trace. Collective.
nlohmann::json trace_of(const Session& session, const TaskContext& context, const TimedRun& run);

/// The step whose duration is the (lower) median.
std::size_t median_step(const std::vector<double>& durations);

}  // namespace stratagem::bench
