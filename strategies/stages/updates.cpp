#include "strategies/stages/updates.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"

namespace stratagem::stages {

using models::LossScale;

Updates::Updates(const models::WorkloadOptions& options, const OwnStages& stages,
                 std::size_t devices, distributed::ProcessGroup* ranks)
    : options_(options), stages_(stages), ranks_(ranks), scales_(devices, first_scale()) {}

void Updates::take_norm(int stage, GradientNorms& norms) const {
  norms.of_stage.at(static_cast<std::size_t>(stage)) = stages_.squared_gradient_norm(stage);
  norms.scales[stages_.device_of(stage)] = scale(stage);
}

/// Every replica has the same gradients, so the sum is over the ranks of one.
void Updates::sum_norms(int stage, GradientNorms& norms) const {
  norms.summed = sum_on(stages_.device(stage).description(), norms.of_stage);
  if (ranks_ == nullptr) throw std::logic_error("a sum of norms needs a process group");
  ranks_->all_reduce(norms.summed)->wait();
}

/// Returns the squared norm of the gradients of all of this rank's stages, or of the whole
/// replica's once its ranks have summed them. The first of a step's updates reads it.
double Updates::squared_norm(int stage, GradientNorms& norms) const {
  const runtime::DeviceDescription& device = stages_.device(stage).description();
  return norms.on_host.read([&] {
    return norms.summed.defined() ? backends::copy_to(norms.summed, device)
                                  : sum_on(device, norms.of_stage);
  });
}

void Updates::update(int stage, double learning_rate, GradientNorms& norms) {
  Stage& own = stages_.at(stage);
  own.optimizer().set_learning_rate(learning_rate);
  if (scales()) return update_scaled(stage, norms);
  if (!clips()) return own.update();
  const double norm = squared_norm(stage, norms);
  if (stage == stages_.list().front()) norms.norm = std::sqrt(norm);
  own.update(norm);
}

/// All ranks have the same norm, so that all or none skip a step, and their scales stay equal.
void Updates::update_scaled(int stage, GradientNorms& norms) {
  Stage& own = stages_.at(stage);
  const double factor = norms.scales[stages_.device_of(stage)];
  const double unscaled = squared_norm(stage, norms) / (factor * factor);
  const bool finite = std::isfinite(unscaled);
  settle_scale(stage, finite, norms);
  if (stage == stages_.list().front()) {
    norms.norm = std::sqrt(unscaled);
    norms.skipped = !finite;
  }
  own.update(unscaled, factor);
  if (!finite) own.drop_gradients();
}

/// Settles the scale once for each device and step, in its first update.
void Updates::settle_scale(int stage, bool finite, GradientNorms& norms) {
  const std::size_t device = stages_.device_of(stage);
  if (std::exchange(norms.scale_is_settled[device], 1) != 0) return;
  LossScale& scale = scales_[device];
  if (finite || !scale.at_floor()) return scale.note_step(finite);
  std::string name;
  for (const int other : stages_.list()) {
    if (name.empty() && stages_.device_of(other) == device) name = stages_.not_finite(other);
  }
  throw std::runtime_error(fmt::format(
      "loss scale {}: the gradient of {} is not finite, and the scale is at its minimum; lower "
      "--learning-rate or use --mixed-precision bfloat16",
      scale.value(), name.empty() ? "another rank" : name));
}

LossScale Updates::first_scale() const {
  return {options_.loss_scale, options_.dynamic_loss_scale, options_.loss_scale_hysteresis};
}

strategies::StateDictionary Updates::state() const {
  if (!options_.dynamic_loss_scale) return {};
  const LossScale::State& own = scales_.front().state();
  return {{LossScale::scale_name, at::scalar_tensor(own.scale, at::kDouble)},
          {LossScale::good_steps_name, at::scalar_tensor(own.good_steps, at::kLong)},
          {LossScale::overflows_left_name, at::scalar_tensor(own.overflows_left, at::kLong)}};
}

void Updates::load(const strategies::StateDictionary& state) {
  LossScale loaded = first_scale();
  if (options_.dynamic_loss_scale && state.contains(LossScale::scale_name)) {
    loaded.load({.scale = state.at(LossScale::scale_name).item<double>(),
                 .good_steps = state.at(LossScale::good_steps_name).item<std::int64_t>(),
                 .overflows_left = state.at(LossScale::overflows_left_name).item<std::int64_t>()});
  }
  scales_.assign(scales_.size(), loaded);
}

}  // namespace stratagem::stages
