// Zero bubble: 1f1b with the backward pass in two halves (Qi, Wan, Huang, Lin 2023, "Zero Bubble
// Pipeline Parallelism"). The gradient of the input goes on at once, those of the weights fill what
// would be idle.
#pragma once

#include <string>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// Each stage begins its forwards so many stages' turns earlier than the next one, and owes so many
/// weight gradients more than the one before: 1 or 2. No device holds more than
/// lead (p - 1) + 1 micro-batches, of p devices.
Schedule zero_bubble(std::string name, const ScheduleSize& size, int lead);

/// Idle part of a step in which each device is idle for so many of its 3 m actions' lengths.
double bubble_of(int idle, const ScheduleSize& size);

}  // namespace stratagem::schedules
