#include "strategies/data_parallel/replicated_strategy.h"

#include <stdexcept>
#include <utility>

namespace stratagem::data_parallel {
namespace {

using schedules::Action;
using schedules::ActionKind;

schedules::Schedule with_replication(const strategies::StrategyContext& context,
                                     const schedules::Schedule& lowered) {
  if (context.groups.data.size() != context.devices.size()) {
    throw std::logic_error("replicas need a process group for each device");
  }
  const models::Model model = context.workload.make_model();
  return schedules::add_replication(lowered, !models::buffers(model.layers).empty());
}

/// The last action of the stage that adds to its gradients.
Action last_backward_of(const schedules::Schedule& schedule, int stage) {
  Action last;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) {
      if (action.stage == stage && makes_weight_gradients(action.kind)) last = action;
    }
  }
  return last;
}

}  // namespace

ReplicatedStrategy::ReplicatedStrategy(const strategies::StrategyContext& context,
                                       const schedules::Schedule& lowered, double ideal_bubble,
                                       std::vector<schedules::Slice> partition,
                                       tensor_parallel::Layout layout)
    : stages::StagedStrategy(context, with_replication(context, lowered), ideal_bubble,
                             std::move(partition), layout) {
  for (const int index : own_stages()) {
    ReplicatedStage& own = replicated_[index];
    own.last_backward = last_backward_of(schedule(), index);
    distributed::ProcessGroup& group =
        *groups().data.at(static_cast<std::size_t>(own_device_of(index)));
    run_on_device(index, "replicas", [this, index, &own, &group, &context] {
      own.replica =
          std::make_unique<data_parallel::Replica>(stage(index).layers(), group, context.options);
    });
  }
}

ReplicatedStrategy::~ReplicatedStrategy() { come_to_rest(); }

strategies::Costs ReplicatedStrategy::costs() const {
  strategies::Costs costs = stages::StagedStrategy::costs();
  for (const auto& [stage, own] : replicated_) add(costs.collectives, own.replica->costs());
  return costs;
}

void ReplicatedStrategy::perform(const Action& action, stages::StepInProgress& step) {
  ReplicatedStage& own = replicated_.at(action.stage);
  if (action.kind == ActionKind::broadcast) return own.replica->broadcast_buffers();
  if (action.kind == ActionKind::gradient_wait) {
    return keep(action.stage, own.replica->wait(), step);
  }
  if (action == own.last_backward) own.replica->before_last_backward();
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
