#include "strategies/stages/staged_strategy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/distributed/tensor_broadcast.h"

namespace stratagem::stages {
namespace {

using schedules::Action;
using schedules::ActionKind;

/// If nothing is sharded, all replicas keep the same state.
strategies::RankGroups with_copies(const strategies::StrategyContext& context) {
  strategies::RankGroups groups = context.groups;
  if (context.options.shard == "none") groups.copies = groups.data;
  return groups;
}

class StagedStep final : public strategies::PendingStep {
 public:
  struct Sums {
    std::function<double(const std::vector<at::Tensor>&)> own;
    std::function<double(double)> all;  // over all ranks
  };

  StagedStep(schedules::Execution execution, std::shared_ptr<StepInProgress> step, Sums sums)
      : execution_(std::move(execution)), step_(std::move(step)), sums_(std::move(sums)) {}

  const schedules::Execution& execution() const override {
    const std::lock_guard lock(step_->mutex);
    auto& concurrent = step_->concurrent;
    execution_.insert(execution_.end(), concurrent.begin(), concurrent.end());
    concurrent.clear();
    return execution_;
  }

  double loss() const override { return sums_.all(own_loss()); }
  double own_loss() const override { return sums_.own(step_->losses); }
  double gradient_norm() const override { return step_->norms.norm; }
  bool skipped() const override { return step_->norms.skipped; }

 private:
  mutable schedules::Execution execution_;
  std::shared_ptr<StepInProgress> step_;
  Sums sums_;
};

}  // namespace

StagedStrategy::StagedStrategy(const strategies::StrategyContext& context, Planner planner,
                               tensor_parallel::Layout layout)
    : workload_(context.workload),
      devices_(context.devices),
      timeout_(context.timeout),
      before_action_(context.before_action),
      groups_(with_copies(context)),
      keep_inputs_(context.options.inputs == "device"),
      remade_inputs_(remade_by(context.options)),
      reduced_format_(strategies::reduces_in_float32(context.options) ? workload_.master_dtype()
                                                                      : workload_.options().dtype),
      learning_rate_(workload_.options().optimizer.learning_rate),
      planner_(std::move(planner)) {
  const schedules::Schedule usual = planner_(workload_.options().batch).schedule;
  split_backward_ = usual.split_backward;
  if (groups_.activations != nullptr) {
    first_device_ = groups_.activations->rank() * static_cast<int>(devices_.size());
  }
  stages_ = std::make_unique<OwnStages>(usual.device_of_stage, first_device_, devices_);
  updates_ =
      std::make_unique<Updates>(workload_.options(), *stages_, devices_.size(), groups_.norm);
  make_stages(context, layout);
  note_buffers();
  open_mailboxes();
  plan_of(workload_.options().batch);
}

RankPlan StagedStrategy::made_plan(std::int64_t samples) const {
  RankPlan made(planner_(samples), groups_.replica, first_device_,
                static_cast<int>(devices_.size()));
  const schedules::Schedule& schedule = made.plan.schedule;
  if (schedule.device_of_stage != stages_->device_of_stage()) {
    throw std::logic_error(fmt::format("schedule {} has other stages for {} samples than for {}",
                                       schedule.name, samples, workload_.options().batch));
  }
  return made;
}

const RankPlan& StagedStrategy::plan_of(std::int64_t samples) {
  if (const auto found = plans_.find(samples); found != plans_.end()) return found->second;
  synchronize();
  const RankPlan& made = plans_.emplace(samples, made_plan(samples)).first->second;
  for (const int index : stages_->list()) stage(index).make_room(made.slices.size());
  return made;
}

/// Forgets kept inputs if they belong to another batch.
void StagedStrategy::keep_inputs_of(const models::Batch& batch) {
  if (!keep_inputs_ || batch.is_same(kept_)) return;
  synchronize();
  for (const int index : stages_->list()) stage(index).release();
  kept_ = batch;
}

StagedStrategy::~StagedStrategy() { come_to_rest(); }

void StagedStrategy::come_to_rest() {
  try {
    synchronize();
    drain();
  } catch (const std::exception&) {
    // The caller that synchronised has the error; a destructor has no caller to report it to.
    return;
  }
}

std::unique_ptr<strategies::PendingStep> StagedStrategy::step(const models::Batch& batch) {
  const RankPlan& plan = plan_of(batch.checked_size());
  keep_inputs_of(batch);
  auto step = std::make_shared<StepInProgress>(batch, plan, learning_rate_, devices_.size());
  const auto work = [this, step](const Action& action) {
    if (before_action_) before_action_(action);
    perform(action, *step);
    note_collectives(action, *step);
  };
  return std::make_unique<StagedStep>(
      schedules::execute(plan.plan.schedule, devices_, work, first_device_), step,
      StagedStep::Sums{.own = [this](const auto& parts) { return own_sum_of(parts); },
                       .all = [this](double own) { return sum_over_all(own); }});
}

/// Records the exchanges of the action's layers, in the order of all their ranks.
void StagedStrategy::note_collectives(const Action& action, StepInProgress& step) {
  if (!layout_ && !context_) return;
  const auto device = static_cast<int>(stages_->device_of(action.stage));
  const std::lock_guard lock(step.mutex);
  const auto note = [&](const layer_exchange::LayerCollective& collective, ActionKind transfer,
                        ActionKind wait, int number) {
    step.concurrent.push_back({.device = device,
                               .action = {transfer, action.stage, number},
                               .start = collective.transfer->start(),
                               .end = collective.transfer->end()});
    step.concurrent.push_back({.device = device,
                               .action = {wait, action.stage, number},
                               .start = collective.wait_start,
                               .end = collective.wait_end});
  };
  if (layout_) {
    for (const auto& each : layout_->take_collectives()) {
      note(each, ActionKind::tensor_transfer, ActionKind::tensor_wait, step.collectives++);
    }
  }
  if (context_) {
    for (const auto& each : context_->take_collectives()) {
      note(each, ActionKind::context_transfer, ActionKind::context_wait, step.exchanges++);
    }
  }
}

/// Sums over the micro-batches of this rank's last stage.
double StagedStrategy::own_sum_of(const std::vector<at::Tensor>& parts) const {
  double sum = 0;
  const bool counts = !layout_ || layout_->counts();
  for (const at::Tensor& part : parts) {
    if (counts && part.defined()) sum += part.item<double>();
  }
  return sum;
}

double StagedStrategy::sum_over_all(double own) const {
  if (groups_.all == nullptr) return own;
  return sum_over_ranks(own, *groups_.all, backends::torch_device(devices_.front()->description()));
}

void StagedStrategy::perform(const Action& action, StepInProgress& step) {
  FlatGroup* const group = stages_->group(action.stage);
  if (group == nullptr) return compute(action, step);
  perform_on_group(action, *group, step);
}

void StagedStrategy::perform_on_group(const Action& action, FlatGroup& group,
                                      StepInProgress& step) {
  const int micro_batches = step.plan.plan.schedule.micro_batches;
  switch (action.kind) {
    case ActionKind::unshard:
      return group.unshard();
    case ActionKind::unshard_wait:
      return keep(action, group.wait_for_parameters(), step);
    case ActionKind::reshard:
      return group.reshard();
    case ActionKind::reduce_scatter:
      return group.reduce_scatter(micro_batches);
    case ActionKind::gradient_wait:
      return keep(action, group.wait_for_gradients(), step);
    case ActionKind::all_reduce_start:
      return group.all_reduce();
    case ActionKind::all_reduce_wait:
      return keep(action, group.wait_for_sum(), step);
    case ActionKind::forward:
      if (c10::GradMode::is_enabled()) group.before_forward();
      break;
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      group.before_backward();
      break;
    default:
      break;
  }
  compute(action, step);
  if (schedules::makes_weight_gradients(action.kind)) group.after_backward(micro_batches);
  if (action.kind == ActionKind::optimizer) group.publish();
}

/// Adds the awaited transfer to the step's execution.
void StagedStrategy::keep(const Action& wait, const distributed::TransferPointer& ended,
                          StepInProgress& step) {
  const std::lock_guard lock(step.mutex);
  step.concurrent.push_back({.device = static_cast<int>(stages_->device_of(wait.stage)),
                             .action = schedules::awaited_transfer(wait).value(),
                             .start = ended->start(),
                             .end = ended->end()});
}

/// Does the part of an action that does not depend on groups of layers.
void StagedStrategy::compute(const Action& action, StepInProgress& step) {
  const auto [kind, index, micro_batch] = action;
  Stage& own = stage(index);
  switch (kind) {
    case ActionKind::copy_input:
      return load_input(action, step);
    case ActionKind::copy_activation:
      return own.receive_activation(micro_batch, stage(index - 1).output(micro_batch));
    case ActionKind::copy_gradient:
      return own.receive_gradient(micro_batch, stage(index + 1).take_input_gradient(micro_batch));
    case ActionKind::send_activation:
      return mailbox(index).send(action, own.output(micro_batch), step.plan);
    case ActionKind::receive_activation:
      return own.set_input(micro_batch, mailbox(index).receive(action, step.plan));
    case ActionKind::send_gradient:
      return mailbox(index).send(action, own.take_input_gradient(micro_batch), step.plan);
    case ActionKind::receive_gradient:
      return own.set_output_gradient(micro_batch, mailbox(index).receive(action, step.plan));
    case ActionKind::forward:
      return forward(action, step);
    case ActionKind::backward:
    case ActionKind::backward_input:
      return backward(action, step);
    case ActionKind::backward_weight:
      return own.backward_weight(micro_batch);
    case ActionKind::recompute:
      return recompute(action, step);
    case ActionKind::broadcast:
      return broadcast_buffers(index);
    case ActionKind::reduce_gradients:
      return layout_->reduce_gradients(
          index, stages_->gradients_of(index, layout_->partial(index, own.layers())),
          reduced_format_);
    case ActionKind::gradient_norm:
      return updates_->take_norm(index, step.norms);
    case ActionKind::norm_sum:
      return updates_->sum_norms(index, step.norms);
    case ActionKind::optimizer:
      return updates_->update(index, step.learning_rate, step.norms);
    default:
      throw std::logic_error(to_string(action) + " needs a group of layers");
  }
}

/// Neighbours on one device share the tensor: the output of one stage is the next one's input, as a
/// separate leaf.
void StagedStrategy::forward(const Action& action, const StepInProgress& step) {
  const auto [kind, index, micro_batch] = action;
  if (index > 0 && stages_->on_one_device(index, index - 1)) {
    stage(index).set_input(micro_batch, stage(index - 1).output(micro_batch).detach());
  }
  const models::SamplePlaceGuard place(place_of(micro_batch, step));
  stage(index).forward(micro_batch, scaled_weight(action, step),
                       /*keeps=*/!step.plan.recomputed.contains(action));
}

void StagedStrategy::recompute(const Action& action, const StepInProgress& step) {
  const models::SamplePlaceGuard place(place_of(action.micro_batch, step));
  stage(action.stage).recompute(action.micro_batch, scaled_weight(action, step));
}

models::SamplePlace StagedStrategy::place_of(int micro_batch, const StepInProgress& step) const {
  const schedules::Slice& slice = step.plan.slices.at(static_cast<std::size_t>(micro_batch));
  models::SamplePlace place = workload_.place_of(step.batch, slice.start);
  if (layout_) place.first_position = layout_->first_position(own_positions());
  if (context_) place.positions = context_->positions();
  return place;
}

/// Returns the micro-batch's weight, scaled for a backward pass.
double StagedStrategy::scaled_weight(const Action& action, const StepInProgress& step) {
  const double scale = c10::GradMode::is_enabled() ? updates_->scale(action.stage) : 1.0;
  return weight(action.micro_batch, step) * scale;
}

void StagedStrategy::backward(const Action& action, StepInProgress& step) {
  const auto [kind, index, micro_batch] = action;
  if (!is_last(index) && stages_->on_one_device(index, index + 1)) {
    stage(index).set_output_gradient(micro_batch,
                                     stage(index + 1).take_input_gradient(micro_batch));
  }
  stage(index).backward(micro_batch);
  if (!is_last(index)) return;
  at::Tensor& loss = step.losses[static_cast<std::size_t>(micro_batch)];
  loss = stage(index).take_loss(micro_batch);
  if (updates_->scales()) loss = loss.div(updates_->scale(index));
}

/// Broadcasts the buffers of all stages on the stage's device.
void StagedStrategy::broadcast_buffers(int stage) {
  const std::size_t device = stages_->device_of(stage);
  for (const auto& tensors : buffers_.at(device)) {
    distributed::broadcast_from_root(tensors, *groups_.data[device]);
  }
}

void StagedStrategy::load_input(const Action& action, const StepInProgress& step) {
  const schedules::Slice& slice = step.plan.slices.at(static_cast<std::size_t>(action.micro_batch));
  models::Batch part = step.batch.slice(slice.start, slice.count);
  if (context_) part = context_->own_part(std::move(part));
  stage(action.stage).load_input(action.micro_batch, part.inputs, part.targets);
}

double StagedStrategy::weight(int micro_batch, const StepInProgress& step) const {
  const schedules::Slice& slice = step.plan.slices.at(static_cast<std::size_t>(micro_batch));
  return slice.weight(step.batch.size()) * (context_ ? context_->share() : 1.0);
}

void StagedStrategy::synchronize() { runtime::synchronize_all(devices_, timeout_); }

void StagedStrategy::drain() {
  for (const auto& own : mailboxes_) own->drain();
}

}  // namespace stratagem::stages
