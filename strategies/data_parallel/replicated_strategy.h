// ReplicatedStrategy: a StagedStrategy whose stages have replicas on other ranks. Each replica
// trains its share of the batch, and gradients are summed over the replicas while the backward pass
// still runs. With one stage this is DDP; with several, DDP across and a pipeline inside.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "strategies/data_parallel/replica.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::data_parallel {

class ReplicatedStrategy : public stages::StagedStrategy {
 public:
  /// The planner's schedules have what keeps replicas alike. `context.groups.data` must name a
  /// group for each of this rank's devices.
  ReplicatedStrategy(const strategies::StrategyContext& context, const stages::Planner& planner,
                     tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);
  ~ReplicatedStrategy() override;

  strategies::Costs costs(std::int64_t samples) const override;

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override;
  strategies::CollectiveCount payload_of(const schedules::Action& action,
                                         const schedules::Schedule& schedule) const override;
  void broadcast_buffers(int stage) override { replicas_.at(stage)->broadcast_buffers(); }

 private:
  void add_sums_beside_buckets(strategies::Costs& costs, std::int64_t samples) const;
  void keep(int stage, const data_parallel::BucketTransfers& buckets, stages::StepInProgress& step);

  std::map<int, std::unique_ptr<data_parallel::Replica>> replicas_;  // by stage
};

}  // namespace stratagem::data_parallel
