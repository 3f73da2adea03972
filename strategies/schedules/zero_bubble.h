// Zero bubble: 1f1b with the backward pass in two halves (Qi, Wan, Huang, Lin 2023, "Zero Bubble
// Pipeline Parallelism"). The input's gradient goes on at once; the weights' gradients fill idle
// time.
#pragma once

#include <string>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// A stage runs `lead` more forwards in advance than the next one, and may owe `lead` more weight
/// gradients than the one before: 1 or 2. No device of p holds more than lead (p - 1) + 1
/// micro-batches.
Schedule zero_bubble(std::string name, const ScheduleSize& size, int lead);

/// Returns the idle fraction of a device that idles for the duration of `idle` actions beside its 3
/// m actions.
double bubble_of(int idle, const ScheduleSize& size);

}  // namespace stratagem::schedules
