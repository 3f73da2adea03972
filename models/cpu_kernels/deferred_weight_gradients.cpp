#include "models/cpu_kernels/deferred_weight_gradients.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/cpu_kernels/gradient_accumulation_fusion.h"

namespace stratagem::models {
namespace {

constexpr const char* saved_key = "deferred_weight_gradients";

thread_local DeferredWeightGradientsPointer current_deferred;

/// Accumulates as autograd does, hooks included.
void accumulate(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (gradient_has_hooks(parameter)) {
    // Autograd copies the first gradient of a step; a plain sum keeps it.
    parameter.backward(gradient);
  } else if (at::Tensor& sum = parameter.mutable_grad(); sum.defined()) {
    const at::NoGradGuard no_gradient;
    sum.add_(gradient);
  } else {
    sum = gradient;
  }
}

}  // namespace

void DeferredWeightGradients::defer(at::Tensor parameter, std::function<at::Tensor()> compute,
                                    std::function<void()> begin) {
  deferred_.push_back({std::move(parameter), std::move(compute), std::move(begin)});
}

void DeferredWeightGradients::run() {
  std::vector<Deferred> all = std::exchange(deferred_, {});
  auto next = all.begin();
  const auto begin_next = [&] {
    next = std::find_if(next, all.end(), [](const Deferred& each) { return bool(each.begin); });
    if (next != all.end()) (next++)->begin();
  };
  begin_next();
  for (Deferred& each : all) {
    at::Tensor gradient;
    {
      const at::NoGradGuard no_gradient;
      if (each.begin) begin_next();
      gradient = each.compute();
    }
    each.compute = nullptr;  // frees its tensors before the next gradient
    each.begin = nullptr;
    if (gradient.defined()) accumulate(each.parameter, gradient);
  }
}

const DeferredWeightGradientsPointer& current_deferred_weight_gradients() {
  return current_deferred;
}

DeferWeightGradientsGuard::DeferWeightGradientsGuard(DeferredWeightGradientsPointer deferred)
    : previous_(std::exchange(current_deferred, std::move(deferred))) {}

DeferWeightGradientsGuard::~DeferWeightGradientsGuard() { current_deferred = std::move(previous_); }

void save_deferred_weight_gradients(torch::autograd::AutogradContext& context) {
  if (!current_deferred) return;
  context.saved_data[saved_key] = c10::IValue::make_capsule(current_deferred);
}

DeferredWeightGradientsPointer saved_deferred_weight_gradients(
    const torch::autograd::AutogradContext& context) {
  const auto found = context.saved_data.find(saved_key);
  if (found == context.saved_data.end()) return {};
  return c10::static_intrusive_pointer_cast<DeferredWeightGradients>(found->second.toCapsule());
}

}  // namespace stratagem::models
