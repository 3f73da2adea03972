// Calibration of a row whose layers have groups; see has_layer_groups().
#pragma once

#include "bench/worker/tasks.h"

namespace stratagem::bench {

/// What the actions of the row's own strategy cost, and which memory they take, on replicas that
/// each have no others.
CalibrateStagesResult calibrate_sharded(const Config& config, const TaskContext& context);

}  // namespace stratagem::bench
