#include "strategies/data_parallel/replicated_strategy.h"

#include <stdexcept>
#include <utility>

namespace stratagem::strategies {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

pipeline::Schedule with_replication(const StrategyContext& context,
                                    const pipeline::Schedule& lowered) {
  if (context.groups.data.size() != context.devices.size()) {
    throw std::logic_error("replicas need a process group for each device");
  }
  const models::Model model = context.workload.make_model();
  return pipeline::add_replication(lowered, !models::buffers(model.layers).empty());
}

/// The last action of the stage that adds to its gradients.
Action last_backward_of(const pipeline::Schedule& schedule, int stage) {
  Action last;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) {
      const bool adds =
          action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
      if (adds && action.stage == stage) last = action;
    }
  }
  return last;
}

}  // namespace

ReplicatedStrategy::ReplicatedStrategy(const StrategyContext& context,
                                       const pipeline::Schedule& lowered, double ideal_bubble,
                                       std::vector<Slice> partition, tensor_parallel::Layout layout)
    : StagedStrategy(context, with_replication(context, lowered), ideal_bubble,
                     std::move(partition), layout) {
  const data_parallel::ReplicaOptions options{
      .bucket_mebibytes = context.options.bucket_mebibytes,
      .overlap = context.options.overlap,
      .half_precision = context.options.compression == "fp16"};
  for (const int index : own_stages()) {
    ReplicatedStage& own = replicated_[index];
    own.last_backward = last_backward_of(schedule(), index);
    runtime::ProcessGroup& group =
        *groups().data.at(static_cast<std::size_t>(own_device_of(index)));
    run_on_device(index, "replicas", [this, index, &own, &group, &options] {
      own.replica = std::make_unique<data_parallel::Replica>(stage(index).layers(), group, options);
    });
  }
}

ReplicatedStrategy::~ReplicatedStrategy() {
  try {
    synchronize();
  } catch (const std::exception&) {
    // Whoever synchronised before has been told; a destructor has no one to tell.
    return;
  }
}

Costs ReplicatedStrategy::costs() const {
  Costs costs = StagedStrategy::costs();
  for (const auto& [stage, own] : replicated_) {
    for (const auto& [collective, cost] : own.replica->costs()) {
      costs.collectives[collective].calls += cost.calls;
      costs.collectives[collective].payload_bytes += cost.payload_bytes;
    }
  }
  return costs;
}

void ReplicatedStrategy::perform(const Action& action, StepInProgress& step) {
  ReplicatedStage& own = replicated_.at(action.stage);
  if (action.kind == ActionKind::broadcast) return own.replica->broadcast_buffers();
  if (action.kind == ActionKind::gradient_wait) {
    return keep(action.stage, own.replica->wait(), step);
  }
  if (action == own.last_backward) own.replica->before_last_backward();
  StagedStrategy::perform(action, step);
}

/// The transfers become part of the step's execution.
void ReplicatedStrategy::keep(int stage, const data_parallel::BucketTransfers& buckets,
                              StepInProgress& step) {
  const std::lock_guard lock(step.mutex);
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    step.beside.push_back({.device = own_device_of(stage),
                           .action = {ActionKind::all_reduce, stage, static_cast<int>(index)},
                           .start = buckets[index]->start(),
                           .end = buckets[index]->end()});
  }
}

}  // namespace stratagem::strategies
