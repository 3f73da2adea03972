#include "strategies/data_parallel/replicated_strategy.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "strategies/schedules/lowering.h"

namespace stratagem::data_parallel {
namespace {

using schedules::Action;
using schedules::ActionKind;

stages::Planner with_replication(const strategies::StrategyContext& context,
                                 stages::Planner planner) {
  if (context.groups.data.size() != context.devices.size()) {
    throw std::logic_error("replicas need a process group for each device");
  }
  const models::Model model = context.workload.make_meta_model();
  const bool with_buffers = !models::buffers(model.layers).empty();
  return [planner = std::move(planner), with_buffers](std::int64_t samples) {
    stages::StepPlan plan = planner(samples);
    plan.schedule = schedules::add_replication(plan.schedule, with_buffers);
    return plan;
  };
}

}  // namespace

ReplicatedStrategy::ReplicatedStrategy(const strategies::StrategyContext& context,
                                       const stages::Planner& planner,
                                       tensor_parallel::Layout layout)
    : stages::StagedStrategy(context, with_replication(context, planner), layout) {
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
  // Until the last backward pass gradients are summed beside the buckets, which are there all
  // along.
  const auto partition = batch_partition(samples);
  const auto micro_batches = std::ranges::count(partition, replica(), &schedules::Slice::replica);
  if (micro_batches > 1) {
    for (strategies::StateBytes& device : costs.memory) device.gradients *= 2;
  }
  return costs;
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
