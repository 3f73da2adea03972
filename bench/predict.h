// Predicting a row's step from what its actions cost, without running it.
//
// Costs come from the task calibrate_stages: each stage is looped on its own device while the other
// devices loop theirs, and once more while they are idle. The simulator then plays the row's
// schedule with them. They are never taken from the run that is being predicted.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/config.h"
#include "strategies/pipeline/schedule.h"
#include "strategies/runtime/timeline.h"

namespace stratagem::bench {

/// Milliseconds of one kind of action of one stage. `first`: the stage's first backward of a step,
/// which stores gradients where later ones add to them.
struct ActionCost {
  std::string kind;
  int stage = 0;
  std::int64_t samples = 0;
  bool first = false;
  double ms = 0;         // while the other devices are busy
  double alone_ms = -1;  // while they are idle; negative: as while they are busy
};

nlohmann::json costs_to_json(const std::vector<ActionCost>& costs);
std::vector<ActionCost> costs_from_json(const nlohmann::json& costs);

/// The schedule that a row runs, lowered.
pipeline::Schedule schedule_of(const Config& config);

/// The step that the costs make. Throws std::invalid_argument when the costs lack an action.
runtime::Timeline predict_step(const Config& config, const std::vector<ActionCost>& costs);

/// A row of replicas of one stage: `calibration` has the "costs", the "buckets" that a replica
/// sends, and the "link" between the ranks as times of an all-reduce: [{bytes, ms,
/// processor_share}].
runtime::Timeline predict_replicas(const Config& config, const nlohmann::json& calibration);

/// Either of them: `calibration` is the list of costs, or that of replicas.
runtime::Timeline predict_timeline(const Config& config, const nlohmann::json& calibration);
double predict_step_ms(const Config& config, const nlohmann::json& calibration);

/// The costs of devices that nobody slows down, for a machine with a core for each of them.
nlohmann::json costs_alone(const nlohmann::json& costs);

/// What the link between two ranks would take between `ranks` of them, each with such a link: a
/// ring makes 2 (ranks - 1) exchanges of 1 / ranks of the bytes (Patarasuk and Yuan 2009).
nlohmann::json link_of_ring(nlohmann::json link_of_two, int ranks);

/// The same from the costs at two other split sizes, as a straight line in the number of samples.
double predict_step_ms_from_two(const Config& config, const nlohmann::json& costs_a,
                                const nlohmann::json& costs_b);

}  // namespace stratagem::bench
