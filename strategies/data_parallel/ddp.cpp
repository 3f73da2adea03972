#include "strategies/data_parallel/ddp.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "strategies/pipeline/schedule_registry.h"
#include "strategies/registry.h"
#include "strategies/runtime/backend.h"

namespace stratagem::strategies {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

double sum_over_ranks(double value, runtime::ProcessGroup& group, runtime::Device& device) {
  const at::Tensor tensor =
      at::full({1}, value,
               at::TensorOptions(at::kDouble).device(runtime::torch_device(device.description())));
  group.all_reduce(tensor)->wait();
  return tensor.item<double>();
}

class DdpStep final : public PendingStep {
 public:
  DdpStep(std::unique_ptr<PendingStep> own, StepTransfersPointer transfers,
          runtime::ProcessGroup& group, runtime::Device& device)
      : own_(std::move(own)), transfers_(std::move(transfers)), group_(group), device_(device) {}

  const pipeline::Execution& execution() const override {
    const std::lock_guard lock(transfers_->mutex);
    if (all_.empty()) {
      all_ = own_->execution();
      all_.insert(all_.end(), transfers_->entries.begin(), transfers_->entries.end());
    }
    return all_;
  }

  double loss() const override { return sum_over_ranks(own_->loss(), group_, device_); }

 private:
  std::unique_ptr<PendingStep> own_;
  StepTransfersPointer transfers_;
  runtime::ProcessGroup& group_;
  runtime::Device& device_;
  mutable pipeline::Execution all_;
};

/// One stage: forward and backward of each micro-batch in turn, the last one last.
pipeline::Schedule schedule_of(const StrategyContext& context) {
  const int micro_batches = static_cast<int>(context.options.accumulation_steps);
  const models::Model model = context.workload.make_model();
  return pipeline::add_replication(pipeline::make_schedule("naive", 1, micro_batches),
                                   !models::buffers(model.layers).empty());
}

std::vector<std::vector<Slice>> all_slices(const StrategyContext& context) {
  if (context.data_group == nullptr) throw std::logic_error("ddp needs a process group");
  return slices_of_replicas(context.workload.options().batch, context.data_group->size(),
                            context.options.accumulation_steps);
}

}  // namespace

std::vector<std::vector<Slice>> slices_of_replicas(std::int64_t batch, int replicas,
                                                   std::int64_t accumulation_steps) {
  std::vector<std::vector<Slice>> all;
  for (const Slice& share : share_batch(batch, replicas)) {
    std::vector<Slice> own;
    for (const Slice& part : share_batch(share.count, accumulation_steps)) {
      own.push_back({.start = share.start + part.start,
                     .count = part.count,
                     .replica = static_cast<int>(all.size())});
    }
    all.push_back(std::move(own));
  }
  return all;
}

Ddp::Ddp(const StrategyContext& context) : Ddp(context, all_slices(context)) {}

Ddp::Ddp(const StrategyContext& context, const std::vector<std::vector<Slice>>& slices)
    : StagedStrategy(context, schedule_of(context), /*ideal_bubble=*/0.0,
                     slices.at(static_cast<std::size_t>(context.data_group->rank()))),
      group_(*context.data_group) {
  for (const auto& own : slices) partition_.insert(partition_.end(), own.begin(), own.end());
  const data_parallel::ReplicaOptions options{.bucket_mebibytes = context.options.bucket_mebibytes,
                                              .overlap = context.options.overlap};
  run_on_device(0, "replicas", [this, &options] {
    replica_ = std::make_unique<data_parallel::Replica>(stage(0).layers(), group_, options);
  });
}

Ddp::~Ddp() {
  try {
    synchronize();
  } catch (const std::exception&) {
    // Whoever synchronised before has been told; a destructor has no one to tell.
    return;
  }
}

std::unique_ptr<PendingStep> Ddp::step(const models::Batch& batch) {
  auto transfers = std::make_shared<StepTransfers>();
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(transfers);
  }
  return std::make_unique<DdpStep>(StagedStrategy::step(batch), transfers, group_, device_of(0));
}

double Ddp::evaluate(const models::Batch& batch) {
  return sum_over_ranks(StagedStrategy::evaluate(batch), group_, device_of(0));
}

Costs Ddp::costs() const {
  Costs costs = StagedStrategy::costs();
  costs.collectives = replica_->costs();
  return costs;
}

void Ddp::perform(const Action& action, const models::Batch& batch,
                  std::vector<at::Tensor>& losses) {
  switch (action.kind) {
    case ActionKind::broadcast:
      return replica_->broadcast_buffers();
    case ActionKind::gradient_wait:
      return keep(replica_->wait());
    case ActionKind::backward:
      if (action.micro_batch + 1 == schedule().micro_batches) replica_->before_last_backward();
      break;
    default:
      break;
  }
  StagedStrategy::perform(action, batch, losses);
}

/// The step is over: its transfers become part of its execution.
void Ddp::keep(const data_parallel::Buckets& buckets) {
  StepTransfersPointer step;
  {
    const std::lock_guard lock(mutex_);
    step = pending_.front();
    pending_.pop_front();
  }
  const std::lock_guard lock(step->mutex);
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    step->entries.push_back({.device = 0,
                             .action = {ActionKind::all_reduce, 0, static_cast<int>(index)},
                             .start = buckets[index]->start(),
                             .end = buckets[index]->end()});
  }
}

namespace {

const StrategyRegistration registration{
    {.name = "ddp",
     .summary = "the whole model on every rank, gradients summed beside the backward pass",
     .options = {"bucket_mb", "overlap", "accumulation_steps", "backend", "interface"},
     .multi_device = true,
     .rank_per_device = true,
     .make = [](const StrategyContext& context) -> std::unique_ptr<Strategy> {
       return std::make_unique<Ddp>(context);
     }}};

}  // namespace
}  // namespace stratagem::strategies
