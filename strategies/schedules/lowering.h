// Lowering: turns an order of computations into all actions of the devices and their dependencies.
#pragma once

#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// Adds the copies from the host, those between stages on different devices (made by the receiver
/// just before the action that needs them; between devices of different ranks a send just after the
/// action that makes the data and a receive before the one that needs it) and one optimizer action
/// a stage at the end.
Schedule lower(const Schedule& compute);

/// Adds the sum of gradients of which each rank that shares layers has a partial sum, before
/// replicas exchange them or, if none do, before each optimizer action.
Schedule add_gradient_reduction(const Schedule& lowered);

/// Adds the clipping of gradients: before any optimizer action the norm of each stage's gradients
/// and, if a replica's stages are spread over ranks (`across_ranks`), one sum a rank over them. It
/// must come last, because a norm is that of the applied gradients.
Schedule add_clipping(const Schedule& lowered, bool across_ranks);

/// Returns by receive of a device the sends of that device that have arrived by then, because the
/// other device took them before it sent. The next step's first receive shows the rest.
Edges answered_sends(const Schedule& lowered, int device);

/// Returns the forward passes with the copies that they need, for an evaluation.
Schedule forward_only(const Schedule& lowered);

}  // namespace stratagem::schedules
