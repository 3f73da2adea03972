// ShardedStrategy: a StagedStrategy whose stages have replicas on other ranks, over which their
// state is sharded: nothing (DDP: Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating
// Data Parallel Training"), optimizer state (ZeRO-1), gradients too (ZeRO-2), parameters too
// (ZeRO-3, FSDP). Mixed precision also without replicas.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "strategies/sharding/flat_group.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::sharding {

class ShardedStrategy : public stages::StagedStrategy {
 public:
  /// The planner's schedules have the actions that shard groups of layers as `context.options` say.
  /// `context.groups.data` must name a group for each of this rank's devices; `shards` and
  /// `copies`, too, where state is sharded over a part of them.
  ShardedStrategy(const strategies::StrategyContext& context, const stages::Planner& planner,
                  tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);
  ~ShardedStrategy() override;

  strategies::Costs costs(std::int64_t samples) const override;

 protected:
  void perform(const schedules::Action& action, stages::StepInProgress& step) override;
  strategies::CollectiveCount payload_of(const schedules::Action& action,
                                         const schedules::Schedule& schedule) const override;
  std::vector<at::Tensor> gradients_of(int stage,
                                       const std::vector<at::Tensor>& parameters) override;
  void broadcast_buffers(int stage) override;
  at::Tensor squared_gradient_norm_of(int index) override;
  std::string not_finite_in(int index) override;
  void add_state_of(int index, strategies::StateDictionary& all) override;
  void add_pieces_of(int index, bool with_gradients, strategies::StatePieces& all) override;
  void load_state_of(int index, const strategies::StateDictionary& state) override;
  const FlatGroup& group(int index) const { return *(*flat_)[static_cast<std::size_t>(index)]; }
  FlatGroup& group(int index) { return *(*flat_)[static_cast<std::size_t>(index)]; }

 private:
  using FlatGroups = std::vector<std::unique_ptr<FlatGroup>>;  // [group]; null: another rank's
  struct Making;

  explicit ShardedStrategy(const Making& making);
  strategies::CollectiveCount broadcast_cost(std::size_t device) const;
  void keep(const schedules::Action& wait, const distributed::TransferPointer& ended,
            stages::StepInProgress& step);

  std::shared_ptr<FlatGroups> flat_;
  std::vector<std::vector<std::vector<at::Tensor>>> buffers_;  // [own device][type]
};

}  // namespace stratagem::sharding
