// How the stages of a StagedStrategy are updated, with their gradients clipped or not.
#include <ATen/ATen.h>

#include <cmath>

#include "strategies/backends/backend.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

/// The squared norm of the gradients of all of this rank's stages, or of the whole replica's once
/// its ranks have added them up; where `stage` lies.
double StagedStrategy::squared_norm_on(int stage, const StepInProgress& step) const {
  const runtime::DeviceDescription& device =
      devices_[static_cast<std::size_t>(own_device_of(stage))]->description();
  const auto value = [&](const at::Tensor& scalar) {
    return backends::copy_to(scalar, device).item<double>();
  };
  if (step.squared_norm.defined()) return value(step.squared_norm);
  double sum = 0;
  for (const int index : own_stages_) {
    sum += value(step.squared_norms.at(static_cast<std::size_t>(index)));
  }
  return sum;
}

/// Every replica has the same gradients, so it needs no other one.
void StagedStrategy::sum_norms(int stage, StepInProgress& step) const {
  const at::Device device = backends::torch_device(
      devices_[static_cast<std::size_t>(own_device_of(stage))]->description());
  const at::Tensor sum =
      at::full({1}, squared_norm_on(stage, step), at::TensorOptions(device).dtype(at::kDouble));
  groups_.norm->all_reduce(sum)->wait();
  step.squared_norm = sum.squeeze(0);
}

void StagedStrategy::update(int index, StepInProgress& step) {
  Stage& own = stage(index);
  own.optimizer().set_learning_rate(step.learning_rate);
  if (!clips()) return own.update();
  const double squared_norm = squared_norm_on(index, step);
  if (index == own_stages_.front()) step.gradient_norm = std::sqrt(squared_norm);
  own.update(squared_norm);
}

}  // namespace stratagem::stages
