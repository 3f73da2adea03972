// Calibrates a row whose layers have groups; see has_layer_groups().
#pragma once

#include "bench/worker/tasks.h"

namespace stratagem::bench {

/// Returns the costs and memory of the actions of the row's own strategy, on replicas without
/// others.
CalibrateStagesResult calibrate_sharded(const Config& config, const TaskContext& context);

/// Returns what the actions of the row's own strategy do to the memory of a replica's devices, for
/// a row whose layers have no groups. Takes a few steps.
StepMemory calibrate_memory(const Config& config, const TaskContext& context);

}  // namespace stratagem::bench
