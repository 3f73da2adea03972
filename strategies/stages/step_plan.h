// StepPlan: what a step does with a batch of some size. A value, made by a pure function, so that a
// strategy trains and evaluates on batches of any size, the short last one of an epoch too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::stages {

struct StepPlan {
  schedules::Schedule schedule = {};  // lowered and valid
  double ideal_bubble = 0;
  std::vector<schedules::Slice> partition = {};  // of the batch, one a micro-batch, of all replicas
  // Where they are not what follows from the schedule:
  std::optional<schedules::Schedule> evaluation = {};  // its forward passes
  std::optional<schedules::Schedule> uncut = {};       // before stages were cut into groups
};

/// The plan of a batch of `samples`. Plans differ in their micro-batches alone: the same stages
/// stand on the same devices.
using Planner = std::function<StepPlan(std::int64_t samples)>;

}  // namespace stratagem::stages
