// Our clipping against torch.nn.utils, whole and in parts.
#include "models/gradient_clipping.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>

#include <cmath>

namespace stratagem::models::gradient_clipping_test {
namespace {

std::vector<at::Tensor> with_gradients(at::ScalarType dtype) {
  std::vector<at::Tensor> parameters;
  for (const std::int64_t size : {3, 17, 1}) {
    parameters.push_back(at::zeros({size, 2}, dtype).requires_grad_());
    parameters.back().mutable_grad() =
        at::linspace(-3, size, 2 * size).reshape({size, 2}).to(dtype);
  }
  parameters.push_back(at::zeros({4}, dtype).requires_grad_());  // without a gradient
  return parameters;
}

TEST(GradientClipping, IsTorchs) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const double most : {0.5, 20.0, 1e9}) {
      const auto ours = with_gradients(dtype);
      const auto theirs = with_gradients(dtype);
      const double norm = torch::nn::utils::clip_grad_norm_(theirs, most);
      const double squared = squared_gradient_norm(ours, at::kCPU).item<double>();
      EXPECT_NEAR(std::sqrt(squared), norm, 1e-6 * norm);
      clip_gradients(ours, squared, most);
      for (std::size_t index = 0; index + 1 < ours.size(); ++index) {
        EXPECT_TRUE(at::allclose(ours[index].grad(), theirs[index].grad(), 1e-6, 0)) << most;
      }
    }
  }
}

TEST(GradientClipping, PartsAddUpToTheWhole) {
  const auto all = with_gradients(at::kDouble);
  const double whole = squared_gradient_norm(all, at::kCPU).item<double>();
  double parts = 0;
  for (const at::Tensor& each : all) {
    parts += squared_gradient_norm({each}, at::kCPU).item<double>();
  }
  EXPECT_NEAR(parts, whole, 1e-12 * whole);
  EXPECT_EQ(squared_gradient_norm(std::vector<at::Tensor>(), at::kCPU).item<double>(), 0);
}

}  // namespace
}  // namespace stratagem::models::gradient_clipping_test
