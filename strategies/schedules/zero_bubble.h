// Zero bubble: 1f1b with the backward pass in two halves (Qi, Wan, Huang, Lin 2023, "Zero Bubble
// Pipeline Parallelism"). The gradient of the input goes on at once, those of the weights fill what
// would be idle.
#pragma once

#include <string>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// A stage runs `lead` forwards more in advance than the next one, and may owe as many weight
/// gradients more than the one before: 1 or 2. No device of p holds more than lead (p - 1) + 1
/// micro-batches.
Schedule zero_bubble(std::string name, const ScheduleSize& size, int lead);

/// Idle fraction where each device rests for as long as `idle` actions take, beside its 3 m
/// actions.
double bubble_of(int idle, const ScheduleSize& size);

}  // namespace stratagem::schedules
