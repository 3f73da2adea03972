// The other functions with parameters. Each is ATen's. While weight gradients are deferred (see
// deferred_weight_gradients.h), its backward pass has two halves made of ATen's derivatives. An
// embedding adds only its used rows to an existing gradient (see gradient_accumulation_fusion.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stratagem::models {

/// Returns rows of `weight` [entries, features] for `indices` [...] (int64): [..., features].
at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices);

/// Normalises the last dimension, epsilon 1e-5, then scales and shifts it.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Adds bias [features] to x [..., features] in place.
at::Tensor add_bias(at::Tensor x, const at::Tensor& bias);

struct ConvolutionStride {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// Convolves in two dimensions without bias.
at::Tensor plain_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const ConvolutionStride& options);

/// Tensors of [channels] and x's dtype.
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

/// Normalises x [n, c, h, w] over all dimensions but c, then scales and shifts it. Training updates
/// the running statistics.
at::Tensor plain_batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                            const BatchNormOptions& options);

}  // namespace stratagem::models
