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
#include "strategies/schedules/schedule.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::bench {

/// The samples of a replica's micro-batches, of the one with most of them.
std::vector<std::int64_t> samples_of_a_replica(const Config& config);

/// The schedule that a row's replica runs, lowered; where layers have groups, before it is cut into
/// them.
schedules::Schedule schedule_of(const Config& config);

/// The step that the costs make. Throws std::invalid_argument when the costs lack an action.
schedules::Timeline predict_step(const Config& config, const std::vector<ActionCost>& costs);

/// The step of a row of replicas of one stage.
schedules::Timeline predict_replicas(const Config& config, const StageCosts& calibration);

/// Whether one process has all the row's replicas and runs their schedule.
bool is_data_parallel(const Config& config);

/// The step of replicas in one process. Throws as predict_step() does.
schedules::Timeline predict_data_parallel(const Config& config, const StageCosts& calibration);

/// Whether replicas on ranks gather parameters, or add up gradients, a group of layers at a time.
bool has_layer_groups(const Config& config);

/// Whether a row's loss is scaled, so that its updates need the norm of the gradients.
bool scales_loss(const Config& config);

/// Whether several of such a row's ranks have parts of the gradients' norm.
bool sums_norms_over_ranks(const Config& config);

/// Returns whether the row's reduce-scatters are exchanges, which the replicas sum themselves.
bool scatters_by_exchange(const Config& config);

/// The schedule of a replica whose layers have these groups, with their gathers and scatters.
schedules::Schedule sharded_schedule(const Config& config, const std::vector<LayerGroup>& groups,
                                     bool has_buffers);

/// The step of such a row, its transfers on the measured links. Throws as predict_step() does.
schedules::Timeline predict_sharded(const Config& config, const StageCosts& calibration);

/// What each device of a replica of such a row holds at most [bytes].
std::vector<std::int64_t> predict_peak_bytes(const Config& config, const StageCosts& calibration);

/// Whichever of them the row is.
schedules::Timeline predict_timeline(const Config& config, const StageCosts& costs);
/// The mean of the steps that are timed: see schedules::mean_step_ms.
double predict_step_ms(const Config& config, const StageCosts& costs);

struct Prediction {
  double step_ms = 0;
  std::optional<std::int64_t> peak_bytes = {};  // of the fullest device, where layers have groups
};
Prediction predict(const Config& config, const StageCosts& costs);

/// The costs of devices that nobody slows down, for a machine with a core for each of them.
std::vector<ActionCost> costs_alone(std::vector<ActionCost> costs);

/// What the link between two ranks would take between `ranks` of them, each with such a link: a
/// ring makes 2 (ranks - 1) exchanges of 1 / ranks of the bytes (Patarasuk and Yuan 2009).
std::vector<LinkTime> link_of_ring(std::vector<LinkTime> link_of_two, int ranks);

}  // namespace stratagem::bench
