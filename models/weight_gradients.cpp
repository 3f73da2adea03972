#include "models/weight_gradients.h"

#include <ATen/core/grad_mode.h>

#include "models/gradient_sum.h"

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
    if (!gradient.defined()) continue;
    if (gradient_is_watched(parameter)) {
      // Autograd copies the first gradient of a step where a plain sum keeps it.
      parameter.backward(gradient);
    } else if (at::Tensor& sum = parameter.mutable_grad(); sum.defined()) {
      const at::NoGradGuard no_gradient;
      sum.add_(gradient);
    } else {
      sum = gradient;
    }
  }
}

const WeightGradientsPointer& weight_gradients_in_force() { return in_force; }

CollectWeightGradients::CollectWeightGradients(WeightGradientsPointer collector)
    : previous_(std::exchange(in_force, std::move(collector))) {}

CollectWeightGradients::~CollectWeightGradients() { in_force = std::move(previous_); }

}  // namespace stratagem::models
