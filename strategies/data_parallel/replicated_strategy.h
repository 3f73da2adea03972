// ReplicatedStrategy: a StagedStrategy whose stages have replicas on other ranks. Each replica
// trains its share of the batch, and gradients are summed over the replicas while the backward pass
// still runs. With one stage this is DDP; with several, DDP across and a pipeline inside.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strategies/data_parallel/replica.h"
#include "strategies/pipeline/staged_strategy.h"

namespace stratagem::strategies {

/// The bucket transfers of a step, filled in by its devices.
struct StepTransfers {
  std::mutex mutex;
  std::vector<pipeline::ExecutedAction> entries;
};
using StepTransfersPointer = std::shared_ptr<StepTransfers>;

class ReplicatedStrategy : public StagedStrategy {
 public:
  /// `lowered` is the schedule of one replica without what keeps replicas alike, which is added.
  /// `context.groups.data` must name a group for each of this rank's devices.
  ReplicatedStrategy(const StrategyContext& context, const pipeline::Schedule& lowered,
                     double ideal_bubble, std::vector<Slice> partition);
  ~ReplicatedStrategy() override;

  std::unique_ptr<PendingStep> step(const models::Batch& batch) override;
  Costs costs() const override;

 protected:
  void perform(const pipeline::Action& action, const models::Batch& batch,
               std::vector<at::Tensor>& losses) override;

 private:
  void keep(int stage, const data_parallel::BucketTransfers& buckets);

  struct ReplicatedStage {
    std::unique_ptr<data_parallel::Replica> replica;
    int last_micro_batch = 0;                  // of the stage's backward passes
    std::deque<StepTransfersPointer> pending;  // steps enqueued and not yet over
  };

  std::mutex mutex_;
  std::map<int, ReplicatedStage> replicated_;  // by stage
};

}  // namespace stratagem::strategies
