// StagedStrategy: layers placed on devices in stages, run by a schedule. A single device, model
// parallelism and every pipeline are this one class with another schedule. The stages may be spread
// over ranks: each process then holds its own devices' stages and runs its part of the schedule.
//
// Stages may have replicas on other ranks, which keep all state (DDP: Li et al. 2020, "PyTorch
// Distributed: Experiences on Accelerating Data Parallel Training") or shard it: optimizer state
// (ZeRO-1), gradients too (ZeRO-2), parameters too (ZeRO-3, FSDP). With replicas, and in mixed
// precision, each group of layers is a stage of its own with a FlatGroup.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strategies/context_parallel/context_layout.h"
#include "strategies/schedules/collective_calls.h"
#include "strategies/stages/mailbox.h"
#include "strategies/stages/own_stages.h"
#include "strategies/stages/rank_plan.h"
#include "strategies/stages/updates.h"
#include "strategies/strategy.h"
#include "strategies/tensor_parallel/tensor_layout.h"

namespace stratagem::stages {

/// Returns the plan of a batch of `samples`.
using Planner = std::function<StepPlan(std::int64_t samples)>;

/// The data of a step's actions, and their records beside the schedule.
struct StepInProgress {
  StepInProgress(models::Batch of, const RankPlan& by, double rate, std::size_t devices)
      : plan(by),
        batch(std::move(of)),
        learning_rate(rate),
        losses(by.slices.size()),
        correct(by.slices.size()),
        norms(by.plan.schedule.device_of_stage.size(), devices) {}

  const RankPlan& plan;  // the strategy's plan
  models::Batch batch;
  double learning_rate;
  std::vector<at::Tensor> losses;   // [micro-batch], on the rank of the last stage
  std::vector<at::Tensor> correct;  // [micro-batch], for an evaluation
  GradientNorms norms;
  std::mutex mutex;
  std::vector<schedules::ExecutedAction> concurrent;  // transfers, and waits inside actions
  int collectives = 0;                                // the number so far of this rank's layers
  int exchanges = 0;                                  // the number so far of its attention
};

class StagedStrategy : public strategies::Strategy {
 public:
  /// The planner's stages are the model cut at `context.options.cut`, or its groups of layers, and
  /// its devices one replica's. `layout`: the sharing of layers with the ranks of
  /// `context.groups.tensor`, if any. With replicas `context.groups.data` must have a group for
  /// each of this rank's devices, and so must `shards` and `copies` if state is sharded over a part
  /// of them. Collective among the job's ranks, like the other methods.
  StagedStrategy(const strategies::StrategyContext& context, Planner planner,
                 tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);
  /// Waits until the devices no longer touch the stages.
  ~StagedStrategy() override;

  std::unique_ptr<strategies::PendingStep> step(const models::Batch& batch) override;
  void set_learning_rate(double rate) override { learning_rate_ = rate; }
  strategies::Evaluation evaluate(const models::Batch& batch) override;
  strategies::StateDictionary state() override;
  strategies::StatePieces own_state(bool with_gradients) override;
  void load(const strategies::StateDictionary& state) override;
  std::vector<schedules::Slice> batch_partition(std::int64_t samples) const override {
    return planner_(samples).partition;
  }
  int replica() const override { return groups_.replica; }
  strategies::Costs costs(std::int64_t samples) const override;

 protected:
  /// Does one action. Tests override it to break single actions.
  virtual void perform(const schedules::Action& action, StepInProgress& step);
  /// Returns the share of a micro-batch in the global batch.
  virtual double weight(int micro_batch, const StepInProgress& step) const;
  Stage& stage(int index) { return stages_->at(index); }
  FlatGroup& group(int index) { return *stages_->group(index); }
  const strategies::RankGroups& groups() const { return groups_; }
  void synchronize();
  /// A destructor calls it to wait until the devices no longer touch the stages, whatever fails.
  void come_to_rest();

 private:
  // Functions of the construction.
  void require_groups(const strategies::PlanRequest& request) const;
  void make_stages(const strategies::StrategyContext& context, tensor_parallel::Layout layout);
  std::unique_ptr<Stage> make_stage(int index, models::LayerList layers);
  std::unique_ptr<FlatGroup> make_group(int index, const strategies::StrategyContext& context,
                                        tensor_parallel::Layout layout);
  void make_layout(const strategies::StrategyContext& context, tensor_parallel::Layout layout,
                   const std::vector<std::size_t>& boundaries);
  void note_shapes(const std::vector<models::LayerList>& parts);
  void note_buffers();
  void open_mailboxes();

  // Functions of a step.
  RankPlan made_plan(std::int64_t samples) const;
  const RankPlan& plan_of(std::int64_t samples);
  void keep_inputs_of(const models::Batch& batch);
  void compute(const schedules::Action& action, StepInProgress& step);
  void perform_on_group(const schedules::Action& action, FlatGroup& group, StepInProgress& step);
  void keep(const schedules::Action& wait, const distributed::TransferPointer& ended,
            StepInProgress& step);
  void note_collectives(const schedules::Action& action, StepInProgress& step);
  std::int64_t own_positions() const;
  void load_input(const schedules::Action& action, const StepInProgress& step);
  void forward(const schedules::Action& action, const StepInProgress& step);
  void recompute(const schedules::Action& action, const StepInProgress& step);
  models::SamplePlace place_of(int micro_batch, const StepInProgress& step) const;
  double scaled_weight(const schedules::Action& action, const StepInProgress& step);
  void backward(const schedules::Action& action, StepInProgress& step);
  void broadcast_buffers(int stage);
  Mailbox& mailbox(int stage) { return *mailboxes_.at(stages_->device_of(stage)); }
  bool is_last(int stage) const { return stage + 1 == stages_->count(); }
  double own_sum_of(const std::vector<at::Tensor>& parts) const;
  double sum_over_all(double own) const;
  void drain();

  // Functions of the costs.
  models::Shape output_shape(int stage, std::int64_t samples) const;
  double recomputed_flops(const RankPlan& plan) const;
  strategies::CollectiveCount broadcast_cost(std::size_t device) const;
  strategies::CollectiveCount payload_of(const schedules::Action& action,
                                         const schedules::Schedule& schedule) const;
  void add_group_costs(strategies::Costs& costs, const schedules::Schedule& schedule) const;
  struct Pass {
    int stage = 0;
    std::int64_t samples = 0;
    bool is_recomputed = false;
  };
  std::vector<Pass> passes_of(const RankPlan& plan) const;
  void add_collectives(strategies::Costs& costs, const RankPlan& plan) const;
  void add_attention(strategies::Costs& costs, const RankPlan& plan) const;
  void add_transfers(strategies::Costs& costs, const RankPlan& plan) const;
  strategies::CallLists calls_of(const RankPlan& plan) const;
  const distributed::ProcessGroup* group_of(schedules::RankGroup group, std::size_t device) const;

  const models::Workload& workload_;
  runtime::DeviceSpan devices_;
  std::chrono::milliseconds timeout_;
  std::function<void(const schedules::Action&)> before_action_;
  strategies::RankGroups groups_;
  bool keep_inputs_;
  models::RemadeInputs remade_inputs_;
  at::ScalarType reduced_format_;  // for sums over the ranks of a tensor-parallel group
  double learning_rate_;
  Planner planner_;
  std::map<std::int64_t, RankPlan> plans_;  // by samples, for every size that was stepped on
  models::Batch kept_;                      // the last step's, if inputs stay on the device
  bool split_backward_ = false;
  int first_device_ = 0;  // this rank's first, among the plans' devices
  double flops_of_a_sample_ = 0;
  double remade_flops_of_a_sample_ = 0;
  std::vector<double> repeated_flops_;                        // [stage], by a C for one sample
  std::vector<models::Shape> output_shapes_;                  // [stage], for one sample
  std::unique_ptr<tensor_parallel::TensorLayout> layout_;     // null: layers are whole
  std::unique_ptr<context_parallel::ContextLayout> context_;  // null: samples are whole
  std::unique_ptr<OwnStages> stages_;
  std::unique_ptr<Updates> updates_;
  std::vector<std::vector<std::vector<at::Tensor>>> buffers_;  // [own device][type], for replicas
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;            // [own device], for several ranks
};

}  // namespace stratagem::stages
