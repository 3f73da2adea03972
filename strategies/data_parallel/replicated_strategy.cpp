#include "strategies/data_parallel/replicated_strategy.h"

#include <algorithm>
#include <stdexcept>

namespace stratagem::data_parallel {
namespace {

using schedules::Action;
using schedules::ActionKind;

}  // namespace

ReplicatedStrategy::ReplicatedStrategy(const strategies::StrategyContext& context,
                                       const stages::Planner& planner,
                                       tensor_parallel::Layout layout)
    : stages::StagedStrategy(context, planner, layout) {
  if (context.groups.data.size() != context.devices.size()) {
    throw std::logic_error("replicas need a process group for each device");
  }
  for (const int index : own_stages()) {
    std::unique_ptr<Replica>& own = replicas_[index];
    distributed::ProcessGroup& group =
        *groups().data.at(static_cast<std::size_t>(own_device_of(index)));
    run_on_device(index, "replicas", [this, index, &own, &group, &context] {
      own = std::make_unique<Replica>(stage(index).layers(), group, context.options);
    });
  }
}

ReplicatedStrategy::~ReplicatedStrategy() { come_to_rest(); }

strategies::Costs ReplicatedStrategy::costs(std::int64_t samples) const {
  strategies::Costs costs = stages::StagedStrategy::costs(samples);
  for (const auto& [stage, replica] : replicas_) add(costs.collectives, replica->costs());
  add_sums_beside_buckets(costs, samples);
  return costs;
}

/// Until a stage's last backward pass its gradients are summed beside the buckets, which are there
/// all along.
void ReplicatedStrategy::add_sums_beside_buckets(strategies::Costs& costs,
                                                 std::int64_t samples) const {
  const stages::StepPlan plan = planned(samples);
  for (const auto& actions : plan.schedule.actions) {
    std::map<int, Action> last;  // by stage
    for (const Action& action : actions) {
      if (schedules::makes_weight_gradients(action.kind)) last[action.stage] = action;
    }
    std::map<int, std::int64_t> live;  // likewise
    std::int64_t most = 0;
    for (const Action& action : actions) {
      if (!schedules::makes_weight_gradients(action.kind) || !replicas_.contains(action.stage)) {
        continue;
      }
      if (action == last.at(action.stage)) {
        live.erase(action.stage);
        continue;
      }
      live[action.stage] = replicas_.at(action.stage)->gradient_bytes();
      std::int64_t all = 0;
      for (const auto& [index, bytes] : live) all += bytes;
      most = std::max(most, all);
    }
    if (most == 0) continue;
    costs.memory[static_cast<std::size_t>(own_device_of(last.begin()->first))].gradients += most;
  }
}

strategies::CollectiveCount ReplicatedStrategy::payload_of(
    const Action& action, const schedules::Schedule& schedule) const {
  const bool waits = action.kind == ActionKind::gradient_wait;
  if (!waits && !schedules::is_of_replicas(action.kind)) {
    return stages::StagedStrategy::payload_of(action, schedule);
  }
  return replicas_.at(action.stage)->costs()[waits ? "all_reduce" : "broadcast"];
}

void ReplicatedStrategy::perform(const Action& action, stages::StepInProgress& step) {
  Replica& replica = *replicas_.at(action.stage);
  if (action.kind == ActionKind::gradient_wait) return keep(action.stage, replica.wait(), step);
  if (action == step.plan.last_backward.at(action.stage)) replica.before_last_backward();
  stages::StagedStrategy::perform(action, step);
}

/// The transfers become part of the step's execution.
void ReplicatedStrategy::keep(int stage, const data_parallel::BucketTransfers& buckets,
                              stages::StepInProgress& step) {
  const std::lock_guard lock(step.mutex);
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    step.concurrent.push_back({.device = own_device_of(stage),
                               .action = {ActionKind::all_reduce, stage, static_cast<int>(index)},
                               .start = buckets[index]->start(),
                               .end = buckets[index]->end()});
  }
}

}  // namespace stratagem::data_parallel
