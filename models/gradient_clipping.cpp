#include "models/gradient_clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace stratagem::models {
namespace {

constexpr double above_zero = 1e-6;  // torch's addition to the norm

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

at::Tensor squared_norm(const std::vector<at::Tensor>& gradients, const at::Device& device) {
  if (gradients.empty()) return at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  return at::stack(at::_foreach_norm(gradients)).to(at::kDouble).square().sum();
}

}  // namespace

at::Tensor squared_gradient_norm(const std::vector<at::Tensor>& parameters,
                                 const at::Device& device) {
  const at::NoGradGuard no_gradient;
  return squared_norm(gradients_of(parameters), device);
}

at::Tensor squared_gradient_norm(const std::vector<CountedGradient>& counted,
                                 const at::Device& device) {
  const at::NoGradGuard no_gradient;
  std::vector<at::Tensor> gradients;
  for (const auto& [parameter, elements] : counted) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    gradients.push_back(elements == gradient.numel() ? gradient
                                                     : gradient.flatten().narrow(0, 0, elements));
  }
  return squared_norm(gradients, device);
}

void clip_gradients(const std::vector<at::Tensor>& parameters, double squared_norm, double most,
                    double scale) {
  const double clipped = most == 0 ? 1 : most / (std::sqrt(squared_norm) + above_zero);
  const double factor = std::min(clipped, 1.0) / scale;
  if (factor == 1) return;
  const at::NoGradGuard no_gradient;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (!gradients.empty()) at::_foreach_mul_(gradients, factor);
}

}  // namespace stratagem::models
