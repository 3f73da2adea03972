// RankPlan: a plan and its consequences on one rank.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "strategies/plan.h"

namespace stratagem::stages {

using strategies::StepPlan;

struct RankPlan {
  /// Makes the plan of a replica on the rank that has `devices` devices from `first_device` on.
  RankPlan(StepPlan of, int replica, int first_device, int devices);

  StepPlan plan;
  std::vector<schedules::Slice> slices;    // this replica's
  std::set<schedules::Action> recomputed;  // see recomputed_passes()
  // The next receive of the same device and kind, which comes from the same rank.
  std::map<schedules::Action, schedules::Action> next_receive;
  schedules::Edges answered;  // by receive: the sends that have arrived by then
};

}  // namespace stratagem::stages
