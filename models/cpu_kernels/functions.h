// The other functions with parameters. Each is ATen's; while weight gradients are deferred (see
// deferred_weight_gradients.h) each has a backward pass of two halves, made of ATen's own
// derivatives. An embedding adds the rows that it used to the gradient where that lies (see
// gradient_accumulation_fusion.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stratagem::models {

/// Rows of `weight` [entries, features] for `indices` [...] (int64): [..., features].
at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices);

/// Normalises the last dimension, epsilon 1e-5, then scales and shifts it.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// x [..., features] + bias [features], in place.
at::Tensor add_bias(at::Tensor x, const at::Tensor& bias);

struct ConvolutionStride {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// Two-dimensional, without bias.
at::Tensor plain_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const ConvolutionStride& options);

/// All [channels], of x's dtype.
struct BatchNormTensors {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
};

struct BatchNormOptions {
  bool training = true;
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// x [n, c, h, w], normalised over all but c, then scaled and shifted; in training the running
/// statistics move.
at::Tensor plain_batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                            const BatchNormOptions& options);

}  // namespace stratagem::models
