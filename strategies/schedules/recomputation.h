// Recomputation of activations: a forward pass keeps only its input, and a C repeats it just before
// the backward pass (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").
#pragma once

#include <set>

#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// Adds a C before each backward pass, and before the arrival of the gradient that the pass awaits,
/// so that it may overlap the wait. A backward pass that follows its own forward pass on the device
/// gets none: its activations are there. Nor do passes of the `kept` stages. `lowered` must have
/// all other actions of the passes, such as the gathers of sharded parameters. A C waits until the
/// next stage's device has copied the output, because it replaces it.
Schedule add_recomputation(const Schedule& lowered, const std::set<int>& kept = {});

/// Returns the forward passes that a C repeats, on all devices.
std::set<Action> recomputed_passes(const Schedule& schedule);

}  // namespace stratagem::schedules
