#include "strategies/data_parallel/replicated_strategy.h"

#include <stdexcept>
#include <utility>

namespace stratagem::strategies {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

/// A step with the transfers of its gradients.
class ReplicatedStep final : public PendingStep {
 public:
  ReplicatedStep(std::unique_ptr<PendingStep> own, StepTransfersPointer transfers)
      : own_(std::move(own)), transfers_(std::move(transfers)) {}

  const pipeline::Execution& execution() const override {
    const std::lock_guard lock(transfers_->mutex);
    if (all_.empty()) {
      all_ = own_->execution();
      all_.insert(all_.end(), transfers_->entries.begin(), transfers_->entries.end());
    }
    return all_;
  }

  double loss() const override { return own_->loss(); }

 private:
  std::unique_ptr<PendingStep> own_;
  StepTransfersPointer transfers_;
  mutable pipeline::Execution all_;
};

pipeline::Schedule with_replication(const StrategyContext& context,
                                    const pipeline::Schedule& lowered) {
  if (context.groups.data.size() != context.devices.size()) {
    throw std::logic_error("replicas need a process group for each device");
  }
  const models::Model model = context.workload.make_model();
  return pipeline::add_replication(lowered, !models::buffers(model.layers).empty());
}

int last_backward_of(const pipeline::Schedule& schedule, int stage) {
  int last = 0;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) {
      if (action.kind == ActionKind::backward && action.stage == stage) last = action.micro_batch;
    }
  }
  return last;
}

}  // namespace

ReplicatedStrategy::ReplicatedStrategy(const StrategyContext& context,
                                       const pipeline::Schedule& lowered, double ideal_bubble,
                                       std::vector<Slice> partition)
    : StagedStrategy(context, with_replication(context, lowered), ideal_bubble,
                     std::move(partition)) {
  const data_parallel::ReplicaOptions options{
      .bucket_mebibytes = context.options.bucket_mebibytes,
      .overlap = context.options.overlap,
      .half_precision = context.options.compression == "fp16"};
  for (const int index : own_stages()) {
    ReplicatedStage& own = replicated_[index];
    own.last_micro_batch = last_backward_of(schedule(), index);
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

std::unique_ptr<PendingStep> ReplicatedStrategy::step(const models::Batch& batch) {
  auto transfers = std::make_shared<StepTransfers>();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [stage, own] : replicated_) own.pending.push_back(transfers);
  }
  return std::make_unique<ReplicatedStep>(StagedStrategy::step(batch), transfers);
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

void ReplicatedStrategy::perform(const Action& action, const models::Batch& batch,
                                 std::vector<at::Tensor>& losses) {
  ReplicatedStage& own = replicated_.at(action.stage);
  switch (action.kind) {
    case ActionKind::broadcast:
      return own.replica->broadcast_buffers();
    case ActionKind::gradient_wait:
      return keep(action.stage, own.replica->wait());
    case ActionKind::backward:
      if (action.micro_batch == own.last_micro_batch) own.replica->before_last_backward();
      break;
    default:
      break;
  }
  StagedStrategy::perform(action, batch, losses);
}

/// The stage's step is over: its transfers become part of the execution.
void ReplicatedStrategy::keep(int stage, const data_parallel::BucketTransfers& buckets) {
  StepTransfersPointer step;
  {
    const std::lock_guard lock(mutex_);
    auto& pending = replicated_.at(stage).pending;
    step = pending.front();
    pending.pop_front();
  }
  const std::lock_guard lock(step->mutex);
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    step->entries.push_back({.device = own_device_of(stage),
                             .action = {ActionKind::all_reduce, stage, static_cast<int>(index)},
                             .start = buckets[index]->start(),
                             .end = buckets[index]->end()});
  }
}

}  // namespace stratagem::strategies
