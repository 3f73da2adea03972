#include "strategies/pipeline/staged_strategy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "strategies/pipeline/partition.h"

namespace stratagem::strategies {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

class StagedStep final : public PendingStep {
 public:
  StagedStep(pipeline::Execution execution, std::shared_ptr<std::vector<at::Tensor>> losses)
      : execution_(std::move(execution)), losses_(std::move(losses)) {}

  const pipeline::Execution& execution() const override { return execution_; }

  double loss() const override {
    double sum = 0;
    for (const at::Tensor& loss : *losses_) sum += loss.item<double>();
    return sum;
  }

 private:
  pipeline::Execution execution_;
  std::shared_ptr<std::vector<at::Tensor>> losses_;
};

void copy_in(const StateDictionary& state, const models::NamedTensor& target) {
  const auto found = state.find(target.name);
  if (found == state.end()) {
    throw std::invalid_argument(fmt::format("the state has no entry \"{}\"", target.name));
  }
  if (found->second.sizes() != target.tensor.sizes()) {
    throw std::invalid_argument(fmt::format("the state's \"{}\" has another shape", target.name));
  }
  target.tensor.detach().copy_(found->second);
}

}  // namespace

std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size) {
  std::vector<Slice> slices;
  for (std::int64_t start = 0; start < batch; start += size) {
    slices.push_back({.start = start, .count = std::min(size, batch - start), .replica = 0});
  }
  return slices;
}

std::vector<Slice> share_batch(std::int64_t batch, std::int64_t parts) {
  if (batch < parts) {
    throw std::invalid_argument(
        fmt::format("--global-batch-size: {} samples cannot be shared by {}", batch, parts));
  }
  std::vector<Slice> slices;
  std::int64_t start = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t count = batch / parts + (part < batch % parts ? 1 : 0);
    slices.push_back({.start = start, .count = count, .replica = 0});
    start += count;
  }
  return slices;
}

StagedStrategy::StagedStrategy(const StrategyContext& context, pipeline::Schedule lowered,
                               double ideal_bubble, std::vector<Slice> slices)
    : workload_(context.workload),
      devices_(context.devices),
      timeout_(context.timeout),
      before_action_(context.before_action),
      schedule_(std::move(lowered)),
      forward_schedule_(pipeline::forward_only(schedule_)),
      ideal_bubble_(ideal_bubble),
      slices_(std::move(slices)) {
  models::Model model = workload_.make_model();
  const auto boundaries = pipeline::boundaries_of(model.layers, context.options.cut);
  std::vector<models::LayerList> parts = models::cut(std::move(model.layers), boundaries);
  if (static_cast<int>(parts.size()) != schedule_.stages()) {
    throw std::invalid_argument(fmt::format("--cut: {} cuts make {} stages, {} are needed",
                                            boundaries.size(), parts.size(), schedule_.stages()));
  }
  stages_.resize(parts.size());
  // Each device's own thread moves its layers, so that they lie in, and count as, its memory.
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const auto owner = static_cast<std::size_t>(schedule_.device_of_stage[index]);
    const pipeline::Stage::Position position{index == 0, index + 1 == parts.size()};
    devices_[owner]->enqueue(runtime::Stream::compute, "set-up", [&, this, index, owner, position] {
      stages_[index] = std::make_unique<pipeline::Stage>(workload_, std::move(parts[index]),
                                                         position, devices_[owner]->description(),
                                                         schedule_.micro_batches);
      stages_[index]->keep_inputs = context.options.inputs_on_device;
    });
  }
  synchronize();
}

StagedStrategy::~StagedStrategy() {
  try {
    synchronize();
  } catch (const std::exception&) {
    // Whoever synchronised before has been told; a destructor has no one to tell.
    return;
  }
}

std::unique_ptr<PendingStep> StagedStrategy::step(const models::Batch& batch) {
  auto losses = std::make_shared<std::vector<at::Tensor>>(slices_.size());
  return std::make_unique<StagedStep>(enqueue(schedule_, batch, losses), losses);
}

pipeline::Execution StagedStrategy::enqueue(
    const pipeline::Schedule& schedule, const models::Batch& batch,
    const std::shared_ptr<std::vector<at::Tensor>>& losses) {
  return pipeline::execute(schedule, devices_, [this, batch, losses](const Action& action) {
    if (before_action_) before_action_(action);
    perform(action, batch, *losses);
  });
}

void StagedStrategy::perform(const Action& action, const models::Batch& batch,
                             std::vector<at::Tensor>& losses) {
  pipeline::Stage& own = stage(action.stage);
  switch (action.kind) {
    case ActionKind::copy_input:
      return load_input(action, batch);
    case ActionKind::copy_activation:
      return own.receive_activation(action.micro_batch,
                                    stage(action.stage - 1).output(action.micro_batch));
    case ActionKind::copy_gradient:
      return own.receive_gradient(action.micro_batch,
                                  stage(action.stage + 1).take_input_gradient(action.micro_batch));
    case ActionKind::forward:
      own.forward(action.micro_batch, weight(action.micro_batch));
      return;
    case ActionKind::backward:
      own.backward(action.micro_batch);
      if (action.stage + 1 == schedule_.stages()) {
        losses[static_cast<std::size_t>(action.micro_batch)] = own.take_loss(action.micro_batch);
      }
      return;
    case ActionKind::optimizer:
      return own.update();
    case ActionKind::broadcast:
    case ActionKind::gradient_wait:
    case ActionKind::all_reduce:
      throw std::logic_error(to_string(action) + " needs a strategy with replicas");
  }
}

void StagedStrategy::load_input(const Action& action, const models::Batch& batch) {
  const Slice& slice = slices_.at(static_cast<std::size_t>(action.micro_batch));
  const models::Batch part = batch.slice(slice.start, slice.count);
  stage(action.stage).load_input(action.micro_batch, part.inputs, part.targets);
}

double StagedStrategy::weight(int micro_batch) const {
  return static_cast<double>(slices_.at(static_cast<std::size_t>(micro_batch)).count) /
         static_cast<double>(workload_.options().batch);
}

double StagedStrategy::evaluate(const models::Batch& batch) {
  synchronize();
  for (const auto& own : stages_) {
    own->set_training(false);
    own->release();
  }
  auto losses = std::make_shared<std::vector<at::Tensor>>(slices_.size());
  const auto forward = [this, &batch, &losses](const Action& action) {
    const c10::AutoGradMode no_gradient(false);
    std::vector<at::Tensor> unused(slices_.size());
    perform(action, batch, unused);
    if (action.kind == ActionKind::forward && action.stage + 1 == schedule_.stages()) {
      (*losses)[static_cast<std::size_t>(action.micro_batch)] =
          stage(action.stage).take_loss(action.micro_batch);
    }
  };
  pipeline::execute(forward_schedule_, devices_, forward);
  synchronize();
  double sum = 0;
  for (const at::Tensor& loss : *losses) sum += loss.item<double>();
  for (const auto& own : stages_) {
    own->set_training(true);
    own->release();
  }
  return sum;
}

StateDictionary StagedStrategy::state() {
  synchronize();
  StateDictionary all;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    all[name] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true);
  };
  for (const auto& own : stages_) {
    for (const auto& parameter : models::parameters(own->layers())) {
      add(parameter.name, parameter.tensor);
      if (parameter.tensor.grad().defined()) {
        add("gradient." + parameter.name, parameter.tensor.grad());
      }
    }
    for (const auto& buffer : models::buffers(own->layers())) add(buffer.name, buffer.tensor);
    for (const auto& entry : own->optimizer().state()) add(entry.name, entry.tensor);
  }
  return all;
}

void StagedStrategy::load(const StateDictionary& state) {
  synchronize();
  const c10::AutoGradMode no_gradient(false);
  for (const auto& own : stages_) {
    for (const auto& parameter : models::parameters(own->layers())) copy_in(state, parameter);
    for (const auto& buffer : models::buffers(own->layers())) copy_in(state, buffer);
    own->optimizer().load(state);
  }
}

Costs StagedStrategy::costs() const {
  Costs costs;
  costs.ideal_bubble = ideal_bubble_;
  costs.stages = schedule_.stages();
  for (const Slice& slice : batch_partition()) {
    models::Shape shape = workload_.input_shape(slice.count);
    bool first = true;
    for (const auto& own : stages_) {
      costs.flops += models::flops(own->layers(), shape, !first).total();
      shape = models::output_shape(own->layers(), shape);
      first = false;
    }
  }
  return costs;
}

runtime::Device& StagedStrategy::device_of(int stage) const {
  const int device = schedule_.device_of_stage.at(static_cast<std::size_t>(stage));
  return *devices_[static_cast<std::size_t>(device)];
}

void StagedStrategy::run_on_device(int stage, const std::string& label,
                                   std::function<void()> work) {
  device_of(stage).enqueue(runtime::Stream::compute, label, std::move(work));
  synchronize();
}

void StagedStrategy::synchronize() { runtime::synchronize_all(devices_, timeout_); }

}  // namespace stratagem::strategies
