// Predicts a row's step from the costs of its actions, without running its schedule.
//
// Costs come from the task calibrate_stages: each stage is looped on its own device while the other
// devices loop theirs, and once more while they are idle. The simulator then plays the row's
// schedule with them. They are never taken from the predicted run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/config/config.h"
#include "bench/predict/stage_costs.h"
#include "strategies/plan.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::bench {

/// Returns the samples of the micro-batches of the replica with most of them.
std::vector<std::int64_t> samples_of(const strategies::StepPlan& plan);

/// Returns the facts of the row's model that its calibration found.
strategies::ModelParts parts_of(const StageCosts& calibration);

/// Returns whether one process has all the row's replicas and runs their schedule.
bool is_data_parallel(const Config& config);

/// Returns whether layers of the row are cut into groups.
bool has_layer_groups(const Config& config);

/// Returns whether the row's reduce-scatters are exchanges, which the replicas sum themselves.
bool scatters_by_exchange(const Config& config);

/// Predicts the step of replicas in one process. Throws like predict_timeline().
schedules::Timeline predict_data_parallel(const Config& config, const StageCosts& calibration);

/// Predicts what each device holds before each of its actions, and at the end: the calibrated
/// changes in the order and at the times of predict_timeline(). [device of the row] Empty if
/// calibration measured no memory.
std::vector<std::vector<MemoryAt>> predict_memory(const Config& config,
                                                  const StageCosts& calibration);

/// Predicts the row's step: its plan with these costs. Throws std::invalid_argument if they lack an
/// action.
schedules::Timeline predict_timeline(const Config& config, const StageCosts& costs);
/// Returns the mean of the timed steps: see schedules::mean_step_ms.
double predict_step_ms(const Config& config, const StageCosts& costs);

struct Prediction {
  double step_ms = 0;
  double low_ms = 0;                            // with the lower quartile of each action's times
  double high_ms = 0;                           // with the upper quartile
  std::optional<std::int64_t> peak_bytes = {};  // of the fullest device, if memory was calibrated
  std::vector<std::vector<MemoryAt>> memory = {};  // [device]
};
Prediction predict(const Config& config, const StageCosts& costs);

/// Returns the costs of devices that do not slow each other: a machine with a core for each.
std::vector<ActionCost> costs_alone(std::vector<ActionCost> costs);

}  // namespace stratagem::bench
