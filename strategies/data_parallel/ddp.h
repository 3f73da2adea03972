// ddp: the whole model on every rank, each trains its share of the batch, and gradients are summed
// over the ranks while the backward pass still runs.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "strategies/data_parallel/replica.h"
#include "strategies/pipeline/staged_strategy.h"

namespace stratagem::strategies {

/// The bucket transfers of a step, filled in by its device.
struct StepTransfers {
  std::mutex mutex;
  std::vector<pipeline::ExecutedAction> entries;
};
using StepTransfersPointer = std::shared_ptr<StepTransfers>;

/// [replica]: its slices, one a micro-batch. Throws std::invalid_argument when there are fewer
/// samples than slices.
std::vector<std::vector<Slice>> slices_of_replicas(std::int64_t batch, int replicas,
                                                   std::int64_t accumulation_steps);

class Ddp : public StagedStrategy {
 public:
  /// `context.data_group` must not be null. Collective among its ranks, as all methods are.
  explicit Ddp(const StrategyContext& context);
  ~Ddp() override;

  std::unique_ptr<PendingStep> step(const models::Batch& batch) override;
  double evaluate(const models::Batch& batch) override;
  std::vector<Slice> batch_partition() const override { return partition_; }
  int replica() const override { return group_.rank(); }
  Costs costs() const override;

 protected:
  void perform(const pipeline::Action& action, const models::Batch& batch,
               std::vector<at::Tensor>& losses) override;

 private:
  Ddp(const StrategyContext& context, const std::vector<std::vector<Slice>>& slices);
  void keep(const data_parallel::Buckets& buckets);

  runtime::ProcessGroup& group_;
  std::vector<Slice> partition_;
  std::mutex mutex_;
  std::deque<StepTransfersPointer> pending_;  // steps enqueued and not yet over
  std::unique_ptr<data_parallel::Replica> replica_;
};

}  // namespace stratagem::strategies
