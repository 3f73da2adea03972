// StagedStrategy: layers placed on devices in stages, run by a schedule. A single device, model
// parallelism and every pipeline are this one class with another schedule.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategies/pipeline/schedule.h"
#include "strategies/pipeline/stage.h"
#include "strategies/strategy.h"

namespace stratagem::strategies {

class StagedStrategy : public Strategy {
 public:
  /// `lowered` must be valid; its stages are the model cut at `context.options.cut`.
  /// `slices` are the parts of the global batch that this process trains, one a micro-batch.
  StagedStrategy(const StrategyContext& context, pipeline::Schedule lowered, double ideal_bubble,
                 std::vector<Slice> slices);
  /// Waits until the devices no longer touch the stages.
  ~StagedStrategy() override;

  std::unique_ptr<PendingStep> step(const models::Batch& batch) override;
  double evaluate(const models::Batch& batch) override;
  StateDictionary state() override;
  void load(const StateDictionary& state) override;
  std::vector<Slice> batch_partition() const override { return slices_; }
  Costs costs() const override;

 protected:
  /// What one action does. Virtual for the tests that break it on purpose.
  virtual void perform(const pipeline::Action& action, const models::Batch& batch,
                       std::vector<at::Tensor>& losses);
  /// The share of a micro-batch in the global batch.
  virtual double weight(int micro_batch) const;
  pipeline::Stage& stage(int index) { return *stages_.at(static_cast<std::size_t>(index)); }
  const pipeline::Schedule& schedule() const { return schedule_; }
  runtime::Device& device_of(int stage) const;
  /// Runs `work` on the stage's device and waits for it.
  void run_on_device(int stage, const std::string& label, std::function<void()> work);
  void synchronize();

 private:
  pipeline::Execution enqueue(const pipeline::Schedule& schedule, const models::Batch& batch,
                              const std::shared_ptr<std::vector<at::Tensor>>& losses);
  void load_input(const pipeline::Action& action, const models::Batch& batch);

  const models::Workload& workload_;
  runtime::DeviceSpan devices_;
  std::chrono::milliseconds timeout_;
  std::function<void(const pipeline::Action&)> before_action_;
  pipeline::Schedule schedule_;
  pipeline::Schedule forward_schedule_;
  double ideal_bubble_;
  std::vector<Slice> slices_;
  std::vector<std::unique_ptr<pipeline::Stage>> stages_;
};

/// Consecutive slices of `size`, the last one smaller when it does not divide `batch`.
std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size);

/// As many consecutive slices as asked for, the first ones a sample larger where it does not divide
/// `batch`. Throws std::invalid_argument when there are fewer samples than parts.
std::vector<Slice> share_batch(std::int64_t batch, std::int64_t parts);

}  // namespace stratagem::strategies
