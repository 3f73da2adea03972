#include "bench/predict/priced_plan.h"

#include <fmt/format.h>

#include <stdexcept>
#include <tuple>

#include "bench/config/placement.h"
#include "bench/predict/predict.h"

namespace stratagem::bench {

using schedules::Action;

namespace {

/// Returns the entry of the action's key; null without one. An action may be first in the
/// calibrated step and not in this plan, or the other way round.
template <class Entry>
const Entry* find(const std::map<GroupCostKeys::Key, Entry>& table, GroupCostKeys::Key key) {
  auto found = table.find(key);
  if (found != table.end()) return &found->second;
  std::get<bool>(key) = !std::get<bool>(key);
  found = table.find(key);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace

PricedPlan::PricedPlan(const Config& config, const StageCosts& calibration)
    : plan_(plan_of(config, parts_of(calibration))), keys_(plan_.schedule, samples_of(plan_)) {
  for (const ActionCost& cost : calibration.costs) {
    table_[{cost.kind, cost.stage, cost.samples, cost.first}] = cost;
  }
  for (const ActionMemory& memory : calibration.memory.actions) {
    memory_[{memory.kind, memory.stage, memory.samples, memory.first}] = memory;
  }
}

const ActionCost& PricedPlan::of(const Action& action) const {
  static const ActionCost nothing;
  const GroupCostKeys::Key key = keys_.of(action);
  if (const ActionCost* found = find(table_, key)) return *found;
  if (schedules::is_send(action.kind) || schedules::is_replicas_own(action.kind)) return nothing;
  throw std::invalid_argument(fmt::format("no calibrated cost for {} with {} samples",
                                          to_string(action), std::get<std::int64_t>(key)));
}

const ActionMemory& PricedPlan::memory_of(const Action& action) const {
  static const ActionMemory nothing;
  const ActionMemory* found = find(memory_, keys_.of(action));
  return found == nullptr ? nothing : *found;
}

}  // namespace stratagem::bench
