// StagedStrategy: layers placed on devices in stages, run by a schedule. A single device, model
// parallelism and every pipeline are this one class with another schedule. The stages may be spread
// over ranks: each process then holds those of its own devices and runs its part of the schedule.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strategies/schedules/schedule.h"
#include "strategies/stages/mailbox.h"
#include "strategies/stages/stage.h"
#include "strategies/strategy.h"
#include "strategies/tensor_parallel/tensor_layout.h"

namespace stratagem::stages {

/// What a step's actions work on, and what they record beside the schedule.
struct StepInProgress {
  StepInProgress(models::Batch of, std::size_t micro_batches)
      : batch(std::move(of)), losses(micro_batches) {}

  models::Batch batch;
  std::vector<at::Tensor> losses;  // [micro-batch], on the rank of the last stage
  std::mutex mutex;
  std::vector<schedules::ExecutedAction> concurrent;  // transfers, and waits inside of actions
  int collectives = 0;                                // so far, of this rank's layers
};

class StagedStrategy : public strategies::Strategy {
 public:
  /// `lowered` must be valid; its stages are the model cut at `context.options.cut`, and its
  /// devices those of one replica. `partition` are the parts of the global batch, one a
  /// micro-batch, of all replicas. `layout`: how layers are shared with the ranks of
  /// `context.groups.tensor`, if there are any. Collective among the job's ranks, as the other
  /// methods are.
  StagedStrategy(const strategies::StrategyContext& context, schedules::Schedule lowered,
                 double ideal_bubble, std::vector<schedules::Slice> partition,
                 tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);
  /// Waits until the devices no longer touch the stages.
  ~StagedStrategy() override;

  std::unique_ptr<strategies::PendingStep> step(const models::Batch& batch) override;
  double evaluate(const models::Batch& batch) override;
  strategies::StateDictionary state() override;
  void load(const strategies::StateDictionary& state) override;
  std::vector<schedules::Slice> batch_partition() const override { return partition_; }
  int replica() const override { return groups_.replica; }
  strategies::Costs costs() const override;

 protected:
  /// Does one action. A strategy with replicas adds theirs; tests break single actions.
  virtual void perform(const schedules::Action& action, StepInProgress& step);
  /// The share of a micro-batch in the global batch.
  virtual double weight(int micro_batch) const;
  stages::Stage& stage(int index) { return *stages_.at(static_cast<std::size_t>(index)); }
  const schedules::Schedule& schedule() const { return schedule_; }
  const strategies::RankGroups& groups() const { return groups_; }
  /// The stages on this rank's devices, ascending.
  const std::vector<int>& own_stages() const { return own_stages_; }
  /// The stage's device counted among this rank's.
  int own_device_of(int stage) const;
  /// Runs `work` on the stage's device and waits for it.
  void run_on_device(int stage, const std::string& label, std::function<void()> work);
  void synchronize();
  /// Of a destructor: waits until the devices no longer touch the stages, whatever fails.
  void come_to_rest();

 private:
  void make_layout(const strategies::StrategyContext& context, tensor_parallel::Layout layout);
  void make_stages(const strategies::StrategyContext& context);
  void note_shapes(const std::vector<models::LayerList>& parts);
  void open_mailbox(int stage);
  stages::Mailbox::Route route_of(const schedules::Action& action) const;
  std::unique_ptr<stages::Stage> make_stage(const strategies::StrategyContext& context, int index,
                                            models::LayerList layers);
  void note_collectives(const schedules::Action& action, StepInProgress& step);
  void add_collectives(strategies::Costs& costs) const;
  void load_input(const schedules::Action& action, const models::Batch& batch);
  double sum_of(const std::vector<at::Tensor>& losses) const;
  stages::Mailbox& mailbox(int stage) { return *mailboxes_.at(static_cast<std::size_t>(stage)); }
  void drain();

  const models::Workload& workload_;
  runtime::DeviceSpan devices_;
  std::chrono::milliseconds timeout_;
  std::function<void(const schedules::Action&)> before_action_;
  strategies::RankGroups groups_;
  schedules::Schedule schedule_;
  schedules::Schedule forward_schedule_;
  double ideal_bubble_;
  std::vector<schedules::Slice> partition_;
  std::vector<schedules::Slice> slices_;  // this replica's
  int first_device_ = 0;                  // of this rank, among the schedule's
  std::vector<int> own_stages_;
  double flops_ = 0;
  std::vector<std::vector<models::Shape>> output_shapes_;        // [stage][micro-batch]
  std::map<schedules::Action, schedules::Action> next_receive_;  // of the same stage and kind
  std::unique_ptr<tensor_parallel::TensorLayout> layout_;        // null: layers are whole
  std::vector<std::unique_ptr<stages::Stage>> stages_;           // [stage]; null: another rank's
  std::vector<std::unique_ptr<stages::Mailbox>> mailboxes_;      // [stage]; null: none is needed
};

}  // namespace stratagem::stages
