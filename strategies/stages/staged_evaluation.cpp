// What a StagedStrategy says of itself between steps: an evaluation, and its state.
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/distributed/state_pieces.h"
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
  schedules::execute(plan.plan.evaluation, devices_, forward, first_device_);
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
  if (groups_.activations != nullptr) all = gather_state(all, *groups_.activations, device);
  all.merge(loss_scale_state());
  return all;
}

strategies::StatePieces StagedStrategy::own_state(bool with_gradients) {
  synchronize();
  strategies::StatePieces own;
  for (const int index : own_stages_) add_pieces_of(index, with_gradients, own);
  if (layout_) own = layout_->pieces_of_whole(std::move(own));
  if (groups_.all != nullptr && groups_.all->rank() != 0) return own;
  for (const auto& [name, tensor] : loss_scale_state()) {
    own.push_back(distributed::piece_of(name, tensor));
  }
  return own;
}

void StagedStrategy::load(const strategies::StateDictionary& whole) {
  synchronize();
  const strategies::StateDictionary state = layout_ ? layout_->slices(whole) : whole;
  for (const int index : own_stages_) load_state_of(index, state);
  load_loss_scale(whole);
}

models::LossScale StagedStrategy::first_loss_scale() const {
  const models::WorkloadOptions& options = workload_.options();
  return {options.loss_scale, options.dynamic_loss_scale, options.loss_scale_hysteresis};
}

/// It is alike on all devices and ranks.
strategies::StateDictionary StagedStrategy::loss_scale_state() const {
  using models::LossScale;
  if (!workload_.options().dynamic_loss_scale) return {};
  const LossScale::State& own = loss_scales_.front().state();
  return {{LossScale::scale_name, at::scalar_tensor(own.scale, at::kDouble)},
          {LossScale::good_steps_name, at::scalar_tensor(own.good_steps, at::kLong)},
          {LossScale::overflows_left_name, at::scalar_tensor(own.overflows_left, at::kLong)}};
}

/// One that the state lacks starts afresh, as an optimizer's does.
void StagedStrategy::load_loss_scale(const strategies::StateDictionary& state) {
  using models::LossScale;
  LossScale loaded = first_loss_scale();
  if (workload_.options().dynamic_loss_scale && state.contains(LossScale::scale_name)) {
    loaded.load({.scale = state.at(LossScale::scale_name).item<double>(),
                 .good_steps = state.at(LossScale::good_steps_name).item<std::int64_t>(),
                 .overflows_left = state.at(LossScale::overflows_left_name).item<std::int64_t>()});
  }
  loss_scales_.assign(loss_scales_.size(), loaded);
}

void StagedStrategy::add_state_of(int index, strategies::StateDictionary& all) {
  add_state(stage(index), all);
}

/// Every replica has the same.
void StagedStrategy::add_pieces_of(int index, bool with_gradients, strategies::StatePieces& all) {
  if (groups_.replica != 0) return;
  add_pieces(stage(index), models::buffers(stage(index).layers()), with_gradients, all);
}

void StagedStrategy::load_state_of(int index, const strategies::StateDictionary& state) {
  load_state(stage(index), state);
}

}  // namespace stratagem::stages
