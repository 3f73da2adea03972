// A StagedStrategy between steps: evaluation and state.
#include <c10/core/GradMode.h>

#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/distributed/state_pieces.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

using schedules::Action;
using schedules::ActionKind;

strategies::Evaluation StagedStrategy::evaluate(const models::Batch& batch) {
  synchronize();
  const RankPlan& plan = plan_of(batch.checked_size());
  const auto begin_anew = [this](bool training) {
    for (const int index : stages_->list()) {
      stage(index).set_training(training);
      stage(index).release();
    }
  };
  begin_anew(false);
  StepInProgress step(batch, plan, learning_rate_, devices_.size());
  const auto work = [this, &plan, &step](const Action& action) {
    const c10::AutoGradMode no_gradient(false);
    perform(action, step);
    if (layout_) layout_->take_collectives();
    if (context_) context_->take_collectives();
    if (action.kind == ActionKind::forward && is_last(action.stage)) {
      const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
      step.losses[micro_batch] = stage(action.stage).take_loss(action.micro_batch);
      if (!plan.slices[micro_batch].counts) return;
      step.correct[micro_batch] = stage(action.stage).take_correct(action.micro_batch);
    }
  };
  schedules::execute(plan.plan.evaluation, devices_, work, first_device_);
  synchronize();
  drain();
  begin_anew(true);
  const auto sum_of = [this](const auto& parts) { return sum_over_all(own_sum_of(parts)); };
  return {.loss = sum_of(step.losses), .correct = static_cast<std::int64_t>(sum_of(step.correct))};
}

strategies::StateDictionary StagedStrategy::state() {
  synchronize();
  strategies::StateDictionary all;
  stages_->add_state(all);
  const auto device = backends::torch_device(devices_.front()->description());
  if (layout_) all = layout_->gather(all, device);
  if (groups_.activations != nullptr) all = gather_state(all, *groups_.activations, device);
  all.merge(updates_->state());
  return all;
}

strategies::StatePieces StagedStrategy::own_state(bool with_gradients) {
  synchronize();
  strategies::StatePieces own;
  const bool is_first = groups_.replica == 0 && (!context_ || context_->is_first());
  stages_->add_pieces(is_first, with_gradients, own);
  if (layout_) own = layout_->pieces_of_whole(std::move(own));
  if (groups_.all != nullptr && groups_.all->rank() != 0) return own;
  for (const auto& [name, tensor] : updates_->state()) {
    own.push_back(distributed::piece_of(name, tensor));
  }
  return own;
}

void StagedStrategy::load(const strategies::StateDictionary& whole) {
  synchronize();
  stages_->load(layout_ ? layout_->slices(whole) : whole);
  updates_->load(whole);
}

}  // namespace stratagem::stages
