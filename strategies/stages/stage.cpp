#include "strategies/stages/stage.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "models/gradient_clipping.h"
#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"

namespace stratagem::stages {
namespace {

using backends::MemoryCategory;
using backends::MemoryCategoryGuard;

models::LayerList placed_on(const runtime::DeviceDescription& device,
                            const models::Workload& workload, models::LayerList layers) {
  for (const auto& layer : layers) workload.materialise(*layer, backends::torch_device(device));
  return layers;
}

std::vector<at::Tensor> tensors_of(const std::vector<models::NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const models::NamedTensor& each : named) tensors.push_back(each.tensor);
  return tensors;
}

}  // namespace

models::RemadeInputs remade_by(const strategies::StrategyOptions& options) {
  if (options.recompute != "selective") return models::RemadeInputs::never;
  return options.shard == "parameters" ? models::RemadeInputs::at_once
                                       : models::RemadeInputs::with_the_gradient;
}

Stage::Stage(const models::Workload& workload, models::LayerList layers, Position position,
             runtime::DeviceDescription device, int micro_batches)
    : workload_(&workload),
      layers_(placed_on(device, workload, std::move(layers))),
      parameters_(tensors_of(models::parameters(layers_))),
      buffers_(tensors_of(models::buffers(layers_))),
      position_(position),
      device_(std::move(device)),
      optimizer_(workload.make_optimizer(models::parameters(layers_))),
      slots_(static_cast<std::size_t>(micro_batches)) {
  for (const at::Tensor& parameter : parameters_) {
    backends::retag(parameter, MemoryCategory::parameters);
  }
}

void Stage::train(const std::vector<models::NamedTensor>& instead) {
  parameters_ = tensors_of(instead);
  optimizer_ = workload_->make_optimizer(instead);
}

void Stage::load_input(int micro_batch, const at::Tensor& inputs, const at::Tensor& targets) {
  Slot& own = slot(micro_batch);
  if (position_.first && !(keep_inputs && own.input.defined())) {
    own.input = backends::copy_to(inputs, device_);
  }
  if (position_.last && !(keep_inputs && own.targets.defined())) {
    own.targets = backends::copy_to(targets, device_);
  }
}

void Stage::receive_activation(int micro_batch, const at::Tensor& previous_output) {
  slot(micro_batch).input = backends::copy_to(previous_output, device_);
}

void Stage::receive_gradient(int micro_batch, const at::Tensor& next_input_gradient) {
  slot(micro_batch).output_gradient = backends::copy_to(next_input_gradient, device_);
}

void Stage::forward(int micro_batch, double weight, bool keeps) {
  const MemoryCategoryGuard activations(MemoryCategory::activations);
  const bool trains = c10::GradMode::is_enabled();
  if (trains && std::exchange(gradients_are_old_, false)) optimizer_.zero_grad();
  Slot& own = slot(micro_batch);
  backends::mark_used(own.input);
  if (trains && !keeps) {
    const c10::AutoGradMode no_gradient(false);
    own.output = models::forward(layers_, own.input);
    if (position_.last) own.output.reset();
    return;
  }
  compute_output(own, models::forward);
  if (!position_.last) return;
  compute_loss(own, weight);
  if (!trains) {
    own.correct =
        correct ? correct(own.output, own.targets) : workload_->correct(own.output, own.targets);
  }
  own.output.reset();
}

void Stage::recompute(int micro_batch, double weight) {
  const MemoryCategoryGuard activations(MemoryCategory::activations);
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : buffers_) before.push_back(buffer.clone());
  Slot& own = slot(micro_batch);
  // The loss reads the last stage's output.
  compute_output(own, position_.last ? models::forward : models::recompute);
  // A change of the buffer itself would be an error in the backward pass.
  for (std::size_t index = 0; index < buffers_.size(); ++index) {
    buffers_[index].variable_data().copy_(before[index]);
  }
  if (!position_.last) return;
  compute_loss(own, weight);
  own.output.reset();
}

void Stage::compute_output(Slot& own, Pass pass) {
  const bool trains = c10::GradMode::is_enabled();
  if (!position_.first) own.input.requires_grad_(trains);
  if (split_backward && trains) {
    own.weight_gradients = c10::make_intrusive<models::DeferredWeightGradients>();
  }
  const models::DeferWeightGradientsGuard deferring(own.weight_gradients);
  const models::RemadeInputsGuard remaking(remade_inputs);
  own.output = pass(layers_, own.input);
}

void Stage::compute_loss(Slot& own, double weight) const {
  backends::mark_used(own.targets);
  own.loss = loss ? loss(own.output, own.targets, weight)
                  : workload_->loss(own.output, own.targets, weight);
}

void Stage::backward(int micro_batch) {
  const MemoryCategoryGuard activations(MemoryCategory::activations);
  Slot& own = slot(micro_batch);
  if (position_.last) {
    own.loss.backward();
    own.loss = own.loss.detach();
    if (!keep_inputs) own.targets.reset();
  } else {
    backends::mark_used(own.output_gradient);
    own.output.backward(own.output_gradient);
    own.output.reset();
    own.output_gradient.reset();
  }
  if (!position_.first) {
    own.input_gradient = own.input.grad();
    own.input.reset();
  } else if (!keep_inputs) {
    own.input.reset();
  }
  retag_gradients();
}

void Stage::backward_weight(int micro_batch) {
  const MemoryCategoryGuard activations(MemoryCategory::activations);
  std::exchange(slot(micro_batch).weight_gradients, nullptr)->run();
  retag_gradients();
}

/// Hooks of the parameters cannot do this: a gradient with hooks is not accumulated in place.
void Stage::retag_gradients() const {
  for (const at::Tensor& parameter : parameters_) {
    backends::retag(parameter.grad(), MemoryCategory::gradients);
  }
}

strategies::StateBytes Stage::state_bytes() const {
  strategies::StateBytes all;
  for (const at::Tensor& parameter : parameters_) {
    const auto bytes = static_cast<std::int64_t>(parameter.nbytes());
    all += {.parameters = bytes,
            .gradients = bytes,
            .optimizer = models::state_bytes(optimizer_.options(), parameter)};
  }
  return all;
}

at::Tensor Stage::squared_gradient_norm() const {
  const at::Device device = backends::torch_device(device_);
  return counted ? models::squared_gradient_norm(*counted, device)
                 : models::squared_gradient_norm(parameters_, device);
}

void Stage::update(double squared_norm, double loss_scale) {
  if (!std::isfinite(squared_norm)) return;
  models::clip_gradients(parameters_, squared_norm, optimizer_.options().clip_norm, loss_scale);
  update();
}

void Stage::update() {
  for (const at::Tensor& begun : optimizer_.step()) {
    backends::retag(begun, MemoryCategory::optimizer);
  }
  gradients_are_old_ = true;
}

at::Tensor Stage::take_input_gradient(int micro_batch) {
  return std::exchange(slot(micro_batch).input_gradient, at::Tensor());
}

at::Tensor Stage::take_loss(int micro_batch) {
  return std::exchange(slot(micro_batch).loss, at::Tensor()).detach();
}

at::Tensor Stage::take_correct(int micro_batch) {
  return std::exchange(slot(micro_batch).correct, at::Tensor());
}

void Stage::release() {
  for (Slot& own : slots_) own = Slot{};
}

}  // namespace stratagem::stages
