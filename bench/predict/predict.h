// Predicting a row's step from what its actions cost, without running its schedule.
//
// Costs come from the task calibrate_stages: each stage is looped on its own device while the other
// devices loop theirs, and once more while they are idle. The simulator then plays the row's
// schedule with them. They are never taken from the run that is being predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/config/config.h"
#include "bench/predict/stage_costs.h"
#include "strategies/plan.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::bench {

/// The samples of a replica's micro-batches, of the one with most of them.
std::vector<std::int64_t> samples_of(const strategies::StepPlan& plan);

/// The facts of the row's model that its calibration found.
strategies::ModelParts parts_of(const StageCosts& calibration);

/// Whether one process has all the row's replicas and runs their schedule.
bool is_data_parallel(const Config& config);

/// Whether layers of the row are cut into groups.
bool has_layer_groups(const Config& config);

/// Returns whether the row's reduce-scatters are exchanges, which the replicas sum themselves.
bool scatters_by_exchange(const Config& config);

/// The step of replicas in one process. Throws as predict_timeline() does.
schedules::Timeline predict_data_parallel(const Config& config, const StageCosts& calibration);

/// What each device of a replica holds at most [bytes]; of a row whose layers have groups.
std::vector<std::int64_t> predict_peak_bytes(const Config& config, const StageCosts& calibration);

/// The row's step: its plan with these costs. Throws std::invalid_argument when they lack an
/// action.
schedules::Timeline predict_timeline(const Config& config, const StageCosts& costs);
/// The mean of the steps that are timed: see schedules::mean_step_ms.
double predict_step_ms(const Config& config, const StageCosts& costs);

struct Prediction {
  double step_ms = 0;
  double low_ms = 0;   // where each action takes the lower quartile of its times,
  double high_ms = 0;  // and where each takes the upper one
  std::optional<std::int64_t> peak_bytes = {};  // of the fullest device, where layers have groups
};
Prediction predict(const Config& config, const StageCosts& costs);

/// The costs of devices that nobody slows down, for a machine with a core for each of them.
std::vector<ActionCost> costs_alone(std::vector<ActionCost> costs);

}  // namespace stratagem::bench
