#include "strategies/stages/staged_strategy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/schedules/lowering.h"
#include "strategies/stages/partition.h"

namespace stratagem::stages {
namespace {

using schedules::Action;
using schedules::ActionKind;

class StagedStep final : public strategies::PendingStep {
 public:
  struct Sums {
    std::function<double(const std::vector<at::Tensor>&)> own;
    std::function<double(double)> all;  // over the ranks
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
  double gradient_norm() const override { return step_->gradient_norm; }
  bool skipped() const override { return step_->skipped; }

 private:
  mutable schedules::Execution execution_;
  std::shared_ptr<StepInProgress> step_;
  Sums sums_;
};

}  // namespace

StagedStrategy::StagedStrategy(const strategies::StrategyContext& context, Planner planner,
                               tensor_parallel::Layout layout, const StageMaking& making)
    : workload_(context.workload),
      devices_(context.devices),
      timeout_(context.timeout),
      before_action_(context.before_action),
      groups_(context.groups),
      keep_inputs_(context.options.inputs == "device"),
      reduced_format_(strategies::reduces_in_float32(context.options) ? workload_.master_dtype()
                                                                      : workload_.options().dtype),
      learning_rate_(workload_.options().optimizer.learning_rate),
      planner_(std::move(planner)),
      loss_scales_(devices_.size(), first_loss_scale()) {
  const schedules::Schedule usual = planner_(workload_.options().batch).schedule;
  device_of_stage_ = usual.device_of_stage;
  split_backward_ = usual.split_backward;
  if (groups_.activations != nullptr) {
    first_device_ = groups_.activations->rank() * static_cast<int>(devices_.size());
  }
  for (int stage = 0; stage < stage_count(); ++stage) {
    const int device = own_device_of(stage);
    if (device >= 0 && device < static_cast<int>(devices_.size())) own_stages_.push_back(stage);
  }
  make_stages(context, layout, making);
  plan_of(workload_.options().batch);
}

void StagedStrategy::make_layout(const strategies::StrategyContext& context,
                                 tensor_parallel::Layout layout,
                                 const std::vector<std::size_t>& boundaries) {
  if (groups_.tensor == nullptr) return;
  layout_ = std::make_unique<tensor_parallel::TensorLayout>(
      workload_, boundaries, device_of_stage_, *groups_.tensor, *devices_.front(), layout,
      tensor_parallel::ExchangeOptions{
          .overlap = context.options.async_reduce,
          .keep_gathered = context.options.keep_gathered,
          .reduce_scatter = distributed::reduce_scatter_of(context.options.reduce_scatter)});
}

RankPlan StagedStrategy::made_plan(std::int64_t samples) const {
  RankPlan made{.plan = planner_(samples)};
  const schedules::Schedule& schedule = made.plan.schedule;
  if (schedule.device_of_stage != device_of_stage_) {
    throw std::logic_error(fmt::format("schedule {} has other stages for {} samples than for {}",
                                       schedule.name, samples, workload_.options().batch));
  }
  for (const schedules::Slice& slice : made.plan.partition) {
    if (slice.replica == groups_.replica) made.slices.push_back(slice);
  }
  for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
    note_order(first_device_ + device, made);
    made.answered.merge(schedules::answered_sends(schedule, first_device_ + device));
  }
  return made;
}

void StagedStrategy::note_order(int device, RankPlan& made) const {
  std::map<ActionKind, Action> last;
  for (const Action& action : made.plan.schedule.actions.at(static_cast<std::size_t>(device))) {
    if (makes_weight_gradients(action.kind)) made.last_backward[action.stage] = action;
    if (!schedules::is_receive(action.kind)) continue;
    const auto before = last.find(action.kind);
    if (before != last.end()) made.next_receive.insert_or_assign(before->second, action);
    last[action.kind] = action;
  }
}

const RankPlan& StagedStrategy::plan_of(std::int64_t samples) {
  if (const auto found = plans_.find(samples); found != plans_.end()) return found->second;
  synchronize();
  const RankPlan& made = plans_.emplace(samples, made_plan(samples)).first->second;
  for (const int index : own_stages_) stage(index).make_room(made.slices.size());
  return made;
}

/// Inputs that stay on the device are those of the last step's batch.
void StagedStrategy::keep_inputs_of(const models::Batch& batch) {
  if (!keep_inputs_ || batch.is_same(kept_)) return;
  synchronize();
  for (const int index : own_stages_) stage(index).release();
  kept_ = batch;
}

std::unique_ptr<stages::Stage> StagedStrategy::make_stage(int index, models::LayerList layers) {
  const stages::Stage::Position position{index == 0, index + 1 == stage_count()};
  if (layout_) layers = layout_->shard(std::move(layers));
  auto made = std::make_unique<stages::Stage>(
      workload_, std::move(layers), position,
      devices_[static_cast<std::size_t>(own_device_of(index))]->description(),
      /*micro_batches=*/0);
  made->keep_inputs = keep_inputs_;
  made->split_backward = split_backward_;
  if (layout_) {
    made->counted = layout_->counted(made->layers());
    made->loss = [this](const at::Tensor& output, const at::Tensor& targets, double weight) {
      return layout_->loss(output, targets, weight);
    };
    made->correct = [this](const at::Tensor& output, const at::Tensor& targets) {
      return layout_->correct(output, targets);
    };
  }
  return made;
}

void StagedStrategy::make_stages(const strategies::StrategyContext& context,
                                 tensor_parallel::Layout layout, const StageMaking& making) {
  models::Model model = workload_.make_meta_model();
  const auto boundaries = making.boundaries
                              ? *making.boundaries
                              : stages::boundaries_of(model.layers, context.options.cut);
  std::vector<models::LayerList> parts = models::cut(std::move(model.layers), boundaries);
  if (static_cast<int>(parts.size()) != stage_count()) {
    throw std::invalid_argument(fmt::format("--cut: {} cuts make {} stages, {} are needed",
                                            boundaries.size(), parts.size(), stage_count()));
  }
  make_layout(context, layout, boundaries);
  note_shapes(parts);
  stages_.resize(parts.size());
  mailboxes_.resize(parts.size());
  // Each device's own thread fills its layers, so that they lie in, and count as, its memory. The
  // others' never have any.
  for (const int index : own_stages_) {
    const auto owner = static_cast<std::size_t>(own_device_of(index));
    devices_[owner]->enqueue(runtime::Stream::compute, "set-up", [&, this, index, owner] {
      const auto slot = static_cast<std::size_t>(index);
      stages_[slot] = make_stage(index, std::move(parts[slot]));
      if (making.finish) making.finish(index, static_cast<int>(owner), *stages_[slot]);
    });
  }
  synchronize();
  if (groups_.activations == nullptr) return;
  for (const int index : own_stages_) open_mailbox(index);
}

StagedStrategy::~StagedStrategy() { come_to_rest(); }

void StagedStrategy::come_to_rest() {
  try {
    synchronize();
    drain();
  } catch (const std::exception&) {
    // Whoever synchronised before has been told; a destructor has no one to tell.
    return;
  }
}

std::unique_ptr<strategies::PendingStep> StagedStrategy::step(const models::Batch& batch) {
  const RankPlan& plan = plan_of(batch.checked_size());
  keep_inputs_of(batch);
  auto step = std::make_shared<StepInProgress>(batch, plan, learning_rate_);
  step->squared_norms.resize(stages_.size());
  step->loss_scales.resize(devices_.size(), 1);
  step->scale_is_settled.resize(devices_.size(), 0);
  const auto work = [this, step](const Action& action) {
    if (before_action_) before_action_(action);
    perform(action, *step);
    if (layout_) note_collectives(action, *step);
  };
  return std::make_unique<StagedStep>(
      schedules::execute(plan.plan.schedule, devices_, work, first_device_), step,
      StagedStep::Sums{.own = [this](const auto& parts) { return own_sum_of(parts); },
                       .all = [this](double own) { return sum_over_all(own); }});
}

/// What the action's layers exchanged, in the order in which all their ranks did.
void StagedStrategy::note_collectives(const Action& action, StepInProgress& step) {
  const int device = own_device_of(action.stage);
  const std::lock_guard lock(step.mutex);
  for (const tensor_parallel::LayerCollective& collective : layout_->take_collectives()) {
    const int number = step.collectives++;
    step.concurrent.push_back({.device = device,
                               .action = {ActionKind::tensor_transfer, action.stage, number},
                               .start = collective.transfer->start(),
                               .end = collective.transfer->end()});
    step.concurrent.push_back({.device = device,
                               .action = {ActionKind::tensor_wait, action.stage, number},
                               .start = collective.wait_start,
                               .end = collective.wait_end});
  }
}

/// Over the micro-batches of this rank's last stage.
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
  stages::Stage& own = stage(action.stage);
  switch (action.kind) {
    case ActionKind::copy_input:
      return load_input(action, step);
    case ActionKind::copy_activation:
      return own.receive_activation(action.micro_batch,
                                    stage(action.stage - 1).output(action.micro_batch));
    case ActionKind::copy_gradient:
      return own.receive_gradient(action.micro_batch,
                                  stage(action.stage + 1).take_input_gradient(action.micro_batch));
    case ActionKind::send_activation:
      return mailbox(action.stage)
          .send(action, own.output(action.micro_batch), route_of(action, step.plan));
    case ActionKind::receive_activation:
      return own.set_input(action.micro_batch, receive(action, step.plan));
    case ActionKind::send_gradient:
      return mailbox(action.stage)
          .send(action, own.take_input_gradient(action.micro_batch), route_of(action, step.plan));
    case ActionKind::receive_gradient:
      return own.set_output_gradient(action.micro_batch, receive(action, step.plan));
    case ActionKind::forward: {
      hand_over_activation(action);
      const double scale = c10::GradMode::is_enabled() ? loss_scale_on(action.stage).value() : 1.0;
      own.forward(action.micro_batch, weight(action.micro_batch, step) * scale);
      return;
    }
    case ActionKind::backward:
    case ActionKind::backward_input:
      hand_over_gradient(action);
      own.backward(action.micro_batch);
      if (action.stage + 1 == stage_count()) {
        at::Tensor& loss = step.losses[static_cast<std::size_t>(action.micro_batch)];
        loss = own.take_loss(action.micro_batch);
        if (scales()) loss = loss.div(loss_scale_on(action.stage).value());
      }
      return;
    case ActionKind::backward_weight:
      return own.backward_weight(action.micro_batch);
    case ActionKind::broadcast:
      return broadcast_buffers(action.stage);
    case ActionKind::reduce_gradients:
      return layout_->reduce_gradients(
          gradients_of(action.stage, layout_->replicated(action.stage, own.layers())),
          reduced_format_);
    case ActionKind::gradient_norm:
      step.squared_norms.at(static_cast<std::size_t>(action.stage)) =
          squared_gradient_norm_of(action.stage);
      step.loss_scales[static_cast<std::size_t>(own_device_of(action.stage))] =
          loss_scale_on(action.stage).value();
      return;
    case ActionKind::norm_sum:
      return sum_norms(action.stage, step);
    case ActionKind::optimizer:
      return update(action.stage, step);
    default:
      throw std::logic_error(to_string(action) + " needs a strategy with replicas");
  }
}

std::vector<at::Tensor> StagedStrategy::gradients_of(int /*stage*/,
                                                     const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return gradients;
}

void StagedStrategy::broadcast_buffers(int stage) {
  throw std::logic_error(fmt::format("stage {} has no replicas to take buffers from", stage));
}

void StagedStrategy::load_input(const Action& action, const StepInProgress& step) {
  const schedules::Slice& slice = step.plan.slices.at(static_cast<std::size_t>(action.micro_batch));
  const models::Batch part = step.batch.slice(slice.start, slice.count);
  stage(action.stage).load_input(action.micro_batch, part.inputs, part.targets);
}

double StagedStrategy::weight(int micro_batch, const StepInProgress& step) const {
  return step.plan.slices.at(static_cast<std::size_t>(micro_batch)).weight(step.batch.size());
}

int StagedStrategy::own_device_of(int stage) const {
  return device_of_stage_.at(static_cast<std::size_t>(stage)) - first_device_;
}

void StagedStrategy::run_on_device(int stage, const std::string& label,
                                   std::function<void()> work) {
  devices_[static_cast<std::size_t>(own_device_of(stage))]->enqueue(runtime::Stream::compute, label,
                                                                    std::move(work));
  synchronize();
}

void StagedStrategy::synchronize() { runtime::synchronize_all(devices_, timeout_); }

}  // namespace stratagem::stages
