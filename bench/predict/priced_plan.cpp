#include "bench/predict/priced_plan.h"

#include <fmt/format.h>

#include <stdexcept>
#include <tuple>

#include "bench/config/placement.h"
#include "bench/predict/predict.h"

namespace stratagem::bench {

using schedules::Action;

PricedPlan::PricedPlan(const Config& config, const StageCosts& calibration)
    : plan_(plan_of(config, parts_of(calibration))), keys_(plan_.schedule, samples_of(plan_)) {
  for (const ActionCost& cost : calibration.costs) {
    table_[{cost.kind, cost.stage, cost.samples, cost.first}] = cost;
  }
}

const ActionCost& PricedPlan::of(const Action& action) const {
  static const ActionCost nothing;
  GroupCostKeys::Key key = keys_.of(action);
  auto found = table_.find(key);
  // An action may be first in the calibrated step and not in this plan, or the other way round.
  std::get<bool>(key) = !std::get<bool>(key);
  if (found == table_.end()) found = table_.find(key);
  if (found != table_.end()) return found->second;
  if (schedules::is_send(action.kind) || schedules::is_replicas_own(action.kind)) return nothing;
  throw std::invalid_argument(fmt::format("no calibrated cost for {} with {} samples",
                                          to_string(action), std::get<std::int64_t>(key)));
}

}  // namespace stratagem::bench
