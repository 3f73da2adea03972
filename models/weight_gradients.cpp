#include "models/weight_gradients.h"

#include <ATen/core/grad_mode.h>

namespace stratagem::models {
namespace {

thread_local WeightGradientsPointer in_force;

}  // namespace

void WeightGradients::leave(at::Tensor parameter, std::function<at::Tensor()> compute) {
  left_.emplace_back(std::move(parameter), std::move(compute));
}

void WeightGradients::run() {
  for (auto& [parameter, compute] : std::exchange(left_, {})) {
    at::Tensor gradient;
    {
      const at::NoGradGuard no_gradient;
      gradient = compute();
    }
    compute = nullptr;  // its tensors go before the next ones come
    parameter.backward(gradient);
  }
}

const WeightGradientsPointer& weight_gradients_in_force() { return in_force; }

CollectWeightGradients::CollectWeightGradients(WeightGradientsPointer collector)
    : previous_(std::exchange(in_force, std::move(collector))) {}

CollectWeightGradients::~CollectWeightGradients() { in_force = std::move(previous_); }

}  // namespace stratagem::models
