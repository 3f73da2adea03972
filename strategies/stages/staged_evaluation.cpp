// What a StagedStrategy says of itself between steps: an evaluation, and its state.
#include <c10/core/GradMode.h>

#include "strategies/backends/backend.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/stages/stage_state.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

using schedules::Action;
using schedules::ActionKind;

strategies::Evaluation StagedStrategy::evaluate(const models::Batch& batch) {
  synchronize();
  const RankPlan& plan = plan_of(batch.checked_size());
  for (const int index : own_stages_) {
    stage(index).set_training(false);
    stage(index).release();
  }
  StepInProgress step(batch, plan, learning_rate_);
  step.correct.resize(step.losses.size());
  const auto forward = [this, &plan, &step](const Action& action) {
    const c10::AutoGradMode no_gradient(false);
    perform(action, step);
    if (layout_) layout_->take_collectives();
    if (action.kind == ActionKind::forward && action.stage + 1 == stage_count()) {
      const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
      step.losses[micro_batch] = stage(action.stage).take_loss(action.micro_batch);
      if (!plan.slices[micro_batch].counts) return;
      step.correct[micro_batch] = stage(action.stage).take_correct(action.micro_batch);
    }
  };
  schedules::execute(plan.evaluation, devices_, forward, first_device_);
  synchronize();
  drain();
  for (const int index : own_stages_) {
    stage(index).set_training(true);
    stage(index).release();
  }
  const auto sum_of = [this](const auto& parts) { return sum_over_all(own_sum_of(parts)); };
  return {.loss = sum_of(step.losses), .correct = static_cast<std::int64_t>(sum_of(step.correct))};
}

strategies::StateDictionary StagedStrategy::state() {
  synchronize();
  strategies::StateDictionary all;
  for (const int index : own_stages_) add_state_of(index, all);
  const auto device = backends::torch_device(devices_.front()->description());
  if (layout_) all = layout_->gather(all, device);
  if (groups_.activations == nullptr) return all;
  return gather_state(all, *groups_.activations, device);
}

void StagedStrategy::load(const strategies::StateDictionary& whole) {
  synchronize();
  const strategies::StateDictionary state = layout_ ? layout_->slices(whole) : whole;
  for (const int index : own_stages_) load_state_of(index, state);
}

void StagedStrategy::add_state_of(int index, strategies::StateDictionary& all) {
  add_state(stage(index), all);
}

void StagedStrategy::load_state_of(int index, const strategies::StateDictionary& state) {
  load_state(stage(index), state);
}

}  // namespace stratagem::stages
