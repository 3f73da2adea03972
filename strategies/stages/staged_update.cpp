// How the stages of a StagedStrategy are updated, with their gradients clipped or not.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

/// The squared norm of the gradients of all of this rank's stages, or of the whole replica's once
/// its ranks have added them up. The first of a step's updates reads it.
double StagedStrategy::squared_norm(int stage, StepInProgress& step) const {
  const runtime::DeviceDescription& device =
      devices_[static_cast<std::size_t>(own_device_of(stage))]->description();
  return step.norm_on_host.read([&] {
    return step.squared_norm.defined() ? backends::copy_to(step.squared_norm, device)
                                       : sum_on(device, step.squared_norms);
  });
}

/// Every replica has the same gradients, so it needs no other one.
void StagedStrategy::sum_norms(int stage, StepInProgress& step) const {
  step.squared_norm = sum_on(
      devices_[static_cast<std::size_t>(own_device_of(stage))]->description(), step.squared_norms);
  if (groups_.norm == nullptr) throw std::logic_error("a sum of norms needs a process group");
  groups_.norm->all_reduce(step.squared_norm)->wait();
}

void StagedStrategy::update(int index, StepInProgress& step) {
  Stage& own = stage(index);
  own.optimizer().set_learning_rate(step.learning_rate);
  if (scales()) return update_scaled(index, step);
  if (!clips()) return own.update();
  const double norm = squared_norm(index, step);
  if (index == own_stages_.front()) step.gradient_norm = std::sqrt(norm);
  own.update(norm);
}

at::Tensor StagedStrategy::squared_gradient_norm_of(int index) {
  return stage(index).squared_gradient_norm();
}

std::string StagedStrategy::not_finite_in(int index) {
  for (const auto& [name, tensor] : models::parameters(stage(index).layers())) {
    const at::Tensor& gradient = tensor.grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return name;
  }
  return {};
}

/// All ranks have the same norm, so all skip a step or none does, and their scales stay alike.
void StagedStrategy::update_scaled(int index, StepInProgress& step) {
  Stage& own = stage(index);
  const double factor = step.loss_scales[static_cast<std::size_t>(own_device_of(index))];
  const double unscaled = squared_norm(index, step) / (factor * factor);
  const bool finite = std::isfinite(unscaled);
  settle_scale(index, finite, step);
  if (index == own_stages_.front()) {
    step.gradient_norm = std::sqrt(unscaled);
    step.skipped = !finite;
  }
  own.update(unscaled, factor);
  if (!finite) own.drop_gradients();
}

/// Once a device and step, by the first of its updates.
void StagedStrategy::settle_scale(int index, bool finite, StepInProgress& step) {
  const int device = own_device_of(index);
  if (std::exchange(step.scale_is_settled[static_cast<std::size_t>(device)], 1) != 0) return;
  models::LossScale& scale = loss_scale_on(index);
  if (finite || !scale.at_floor()) return scale.note_step(finite);
  std::string name;
  for (const int other : own_stages_) {
    if (name.empty() && own_device_of(other) == device) name = not_finite_in(other);
  }
  throw std::runtime_error(fmt::format(
      "loss scale {}: the gradient of {} is not finite, and the scale cannot fall; a smaller "
      "learning rate, or --mixed-precision bfloat16, has a wider range",
      scale.value(), name.empty() ? "another rank" : name));
}

}  // namespace stratagem::stages
