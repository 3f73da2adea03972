// StagedStrategy: layers placed on devices in stages, run by a schedule. A single device, model
// parallelism and every pipeline are this one class with another schedule. The stages may be spread
// over ranks: each process then holds those of its own devices and runs its part of the schedule.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "models/loss_scale.h"
#include "strategies/plan.h"
#include "strategies/schedules/collective_calls.h"
#include "strategies/schedules/schedule.h"
#include "strategies/stages/mailbox.h"
#include "strategies/stages/squared_norm.h"
#include "strategies/stages/stage.h"
#include "strategies/strategy.h"
#include "strategies/tensor_parallel/tensor_layout.h"

namespace stratagem::stages {

using strategies::StepPlan;

/// The plan of a batch of `samples`.
using Planner = std::function<StepPlan(std::int64_t samples)>;

/// A plan, and what follows from it on one rank.
struct RankPlan {
  StepPlan plan;
  std::vector<schedules::Slice> slices = {};  // this replica's
  // Of the same device and kind: it comes from the same rank.
  std::map<schedules::Action, schedules::Action> next_receive = {};
  schedules::Edges answered = {};  // by receive: the sends that it shows to have arrived
  std::map<int, schedules::Action> last_backward =
      {};  // by stage: the last that adds to its gradients
};

/// What a step's actions work on, and what they record beside the schedule.
struct StepInProgress {
  StepInProgress(models::Batch of, const RankPlan& by, double rate)
      : plan(by), batch(std::move(of)), learning_rate(rate), losses(by.slices.size()) {}

  const RankPlan& plan;  // the strategy's
  models::Batch batch;
  double learning_rate;
  std::vector<at::Tensor> losses;              // [micro-batch], on the rank of the last stage
  std::vector<at::Tensor> correct = {};        // likewise, of an evaluation
  std::vector<at::Tensor> squared_norms = {};  // [stage], of this rank's
  at::Tensor squared_norm = {};                // of all ranks of the replica, where it has several
  NumberReadOnce norm_on_host = {};            // the one or the sum of the others
  double gradient_norm = 0;
  bool skipped = false;  // its gradients were not finite
  // [own device]: what its losses were multiplied by, and whether that was reconsidered since.
  std::vector<double> loss_scales = {};
  std::vector<char> scale_is_settled = {};
  std::mutex mutex;
  std::vector<schedules::ExecutedAction> concurrent;  // transfers, and waits inside of actions
  int collectives = 0;                                // so far, of this rank's layers
};

/// Where a strategy's stages are not simply those of the context's cut.
struct StageMaking {
  std::optional<std::vector<std::size_t>> boundaries = {};  // layers that begin stages 1, 2, ...
  /// Called with each of this rank's stages as soon as it is made, on the thread of its device,
  /// which is counted among this rank's.
  std::function<void(int index, int device, Stage& made)> finish = {};
};

class StagedStrategy : public strategies::Strategy {
 public:
  /// The planner's stages are the model cut at `context.options.cut`, or as `making` says, and its
  /// devices those of one replica. `layout`: how layers are shared with the ranks of
  /// `context.groups.tensor`, if there are any. Collective among the job's ranks, as the other
  /// methods are.
  StagedStrategy(const strategies::StrategyContext& context, Planner planner,
                 tensor_parallel::Layout layout = tensor_parallel::Layout::tensor,
                 const StageMaking& making = {});
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
  /// Does one action. A strategy with replicas adds theirs; tests break single actions.
  virtual void perform(const schedules::Action& action, StepInProgress& step);
  /// The share of a micro-batch in the global batch.
  virtual double weight(int micro_batch, const StepInProgress& step) const;
  /// One stage's part of state() and load(): whole, as this replica has it.
  virtual void add_state_of(int index, strategies::StateDictionary& all);
  /// Its part of own_state(), counting the layers as whole.
  virtual void add_pieces_of(int index, bool with_gradients, strategies::StatePieces& all);
  virtual void load_state_of(int index, const strategies::StateDictionary& state);
  stages::Stage& stage(int index) { return *stages_.at(static_cast<std::size_t>(index)); }
  const strategies::RankGroups& groups() const { return groups_; }
  /// The stages on this rank's devices, ascending.
  const std::vector<int>& own_stages() const { return own_stages_; }
  /// The stage's device counted among this rank's.
  int own_device_of(int stage) const;
  /// Runs `work` on the stage's device and waits for it.
  void run_on_device(int stage, const std::string& label, std::function<void()> work);
  int stage_count() const { return static_cast<int>(device_of_stage_.size()); }
  /// The plan of a batch of `samples`.
  StepPlan planned(std::int64_t samples) const { return planner_(samples); }
  void synchronize();
  /// Takes over the first replica's buffers; of a strategy with replicas.
  virtual void broadcast_buffers(int stage);
  /// The squared norm of a stage's gradients, as they are scaled.
  virtual at::Tensor squared_gradient_norm_of(int index);
  /// The name of a parameter of the stage whose gradient is not finite; empty: all are.
  virtual std::string not_finite_in(int index);
  /// The gradients of some of a stage's parameters, summed so far: to be changed in place.
  virtual std::vector<at::Tensor> gradients_of(int stage,
                                               const std::vector<at::Tensor>& parameters);
  /// What an action of a schedule hands to its process group; nothing, for one that starts no call.
  virtual strategies::CollectiveCount payload_of(const schedules::Action& action,
                                                 const schedules::Schedule& schedule) const;
  /// Of a destructor: waits until the devices no longer touch the stages, whatever fails.
  void come_to_rest();

 private:
  void make_layout(const strategies::StrategyContext& context, tensor_parallel::Layout layout,
                   const std::vector<std::size_t>& boundaries);
  void make_stages(const strategies::StrategyContext& context, tensor_parallel::Layout layout,
                   const StageMaking& making);
  void note_shapes(const std::vector<models::LayerList>& parts);
  RankPlan made_plan(std::int64_t samples) const;
  void note_order(int device, RankPlan& made) const;
  const RankPlan& plan_of(std::int64_t samples);
  void keep_inputs_of(const models::Batch& batch);
  models::Shape output_shape(int stage, std::int64_t samples) const;
  void open_mailbox(int stage);
  stages::Mailbox::Route route_of(const schedules::Action& action, const RankPlan& plan) const;
  stages::Mailbox::Incoming incoming(const schedules::Action& receive, const RankPlan& plan) const;
  at::Tensor receive(const schedules::Action& action, const RankPlan& plan);
  std::unique_ptr<stages::Stage> make_stage(int index, models::LayerList layers);
  void note_collectives(const schedules::Action& action, StepInProgress& step);
  void add_collectives(strategies::Costs& costs, const RankPlan& plan) const;
  void add_transfers(strategies::Costs& costs, const RankPlan& plan) const;
  strategies::CallLists calls_of(const RankPlan& plan) const;
  const distributed::ProcessGroup* group_of(schedules::RankGroup group, std::size_t device) const;
  void load_input(const schedules::Action& action, const StepInProgress& step);
  bool on_one_device(int stage, int other) const {
    return own_device_of(stage) == own_device_of(other);
  }
  void hand_over_activation(const schedules::Action& forward);
  void hand_over_gradient(const schedules::Action& backward);
  double own_sum_of(const std::vector<at::Tensor>& parts) const;
  double sum_over_all(double own) const;
  bool clips() const { return workload_.options().optimizer.clip_norm > 0; }
  bool scales() const { return workload_.options().loss_scale != 1; }
  models::LossScale& loss_scale_on(int stage) {
    return loss_scales_[static_cast<std::size_t>(own_device_of(stage))];
  }
  models::LossScale first_loss_scale() const;
  strategies::StateDictionary loss_scale_state() const;
  void load_loss_scale(const strategies::StateDictionary& state);
  void update_scaled(int stage, StepInProgress& step);
  void settle_scale(int stage, bool finite, StepInProgress& step);
  void sum_norms(int stage, StepInProgress& step) const;
  double squared_norm(int stage, StepInProgress& step) const;
  void update(int stage, StepInProgress& step);
  stages::Mailbox& mailbox(int stage) { return *mailboxes_.at(static_cast<std::size_t>(stage)); }
  void drain();

  const models::Workload& workload_;
  runtime::DeviceSpan devices_;
  std::chrono::milliseconds timeout_;
  std::function<void(const schedules::Action&)> before_action_;
  strategies::RankGroups groups_;
  bool keep_inputs_;
  at::ScalarType reduced_format_;  // in which the ranks of a tensor-parallel group sum gradients
  double learning_rate_;
  Planner planner_;
  std::map<std::int64_t, RankPlan> plans_;  // by samples; of every size that was stepped on
  models::Batch kept_;                      // of the last step, where inputs stay on the device
  std::vector<int> device_of_stage_;        // [stage], among the plans'
  bool split_backward_ = false;
  int first_device_ = 0;                        // of this rank, among the plans'
  std::vector<models::LossScale> loss_scales_;  // [own device]: alike on all, each its thread's own
  std::vector<int> own_stages_;
  double flops_of_a_sample_ = 0;
  std::vector<models::Shape> output_shapes_;                 // [stage], of one sample
  std::unique_ptr<tensor_parallel::TensorLayout> layout_;    // null: layers are whole
  std::vector<std::unique_ptr<stages::Stage>> stages_;       // [stage]; null: another rank's
  std::vector<std::unique_ptr<stages::Mailbox>> mailboxes_;  // [stage]; null: none is needed
};

}  // namespace stratagem::stages
