// RankPlan: a plan, and what follows from it on one rank.
#pragma once

#include <map>
#include <vector>

#include "strategies/plan.h"

namespace stratagem::stages {

using strategies::StepPlan;

struct RankPlan {
  /// Of a replica, on the rank that has so many `devices` from `first_device` on.
  RankPlan(StepPlan of, int replica, int first_device, int devices);

  StepPlan plan;
  std::vector<schedules::Slice> slices;  // this replica's
  // Of the same device and kind: it comes from the same rank.
  std::map<schedules::Action, schedules::Action> next_receive;
  schedules::Edges answered;  // by receive: the sends that it shows to have arrived
};

}  // namespace stratagem::stages
