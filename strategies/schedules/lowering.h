// Lowering: from an order of computations to everything that devices do, and in which order they
// must.
#pragma once

#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// Adds the copies from the host, those between stages on different devices (made by the receiver,
/// just before the action that needs them; between devices of different ranks a send just after the
/// action that makes the data and a receive before the one that needs it) and one optimizer action
/// a stage at the end.
Schedule lower(const Schedule& compute);

/// Adds the sum, over the ranks that share layers, of gradients of which each has a partial sum,
/// before replicas exchange them or, where none do, before each optimizer action.
Schedule add_gradient_reduction(const Schedule& lowered);

/// Adds the clipping of gradients: before any optimizer action the norm of each stage's gradients
/// and, where a replica's stages are spread over ranks (`across_ranks`), one sum a rank over them.
/// Goes last: a norm is that of the gradients that are applied.
Schedule add_clipping(const Schedule& lowered, bool across_ranks);

/// By receive of a device: the sends of that device which it shows to have arrived, because the
/// other device took them before it sent. What no later receive of its step shows, the next step's
/// first one does.
Edges answered_sends(const Schedule& lowered, int device);

/// The forward passes alone, with the copies that they need: what an evaluation runs.
Schedule forward_only(const Schedule& lowered);

}  // namespace stratagem::schedules
