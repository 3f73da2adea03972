// A row's plan with the costs of its actions.
#pragma once

#include <map>
#include <vector>

#include "bench/config/config.h"
#include "bench/predict/group_cost_keys.h"
#include "bench/predict/stage_costs.h"
#include "strategies/plan.h"

namespace stratagem::bench {

/// Throws std::invalid_argument if the costs lack an action.
class PricedPlan {
 public:
  PricedPlan(const Config& config, const StageCosts& calibration);

  const schedules::Schedule& schedule() const { return plan_.schedule; }

  /// Returns the calibrated cost of the action. Calibration has no sends and no sums of norms over
  /// ranks, which cost nothing.
  const ActionCost& of(const schedules::Action& action) const;

  /// Returns the memory of the action; nothing for one that calibration does not have.
  const ActionMemory& memory_of(const schedules::Action& action) const;

 private:
  strategies::StepPlan plan_;
  GroupCostKeys keys_;
  std::map<GroupCostKeys::Key, ActionCost> table_;
  std::map<GroupCostKeys::Key, ActionMemory> memory_;
};

}  // namespace stratagem::bench
