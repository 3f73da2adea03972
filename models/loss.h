// Losses, weighted so that micro-batches add up.
//
// A global batch of N samples trained in micro-batches of n_i has the mean loss
//   L = sum_i (n_i / N) * L_i,
// so each micro-batch's mean is multiplied by its weight n_i / N. Losses and gradients then sum to
// the whole batch's, also if the last micro-batch is smaller.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace stratagem::models {

enum class Loss {
  mse,            // compared with one-hot rows; the mean runs over samples and classes
  cross_entropy,  // softmax and class indices; the mean runs over all positions
};

/// Returns "mse" or "cross_entropy".
std::string_view to_string(Loss loss);

/// Returns a scalar. `output` is [n, ..., classes]; `targets` are those of make_targets().
at::Tensor loss(Loss kind, const at::Tensor& output, const at::Tensor& targets, double weight);

/// Returns the number of positions where the largest output's class is the target, [] (int64).
/// `output` is [n, ..., classes], `targets` class indices or one-hot rows.
at::Tensor correct_predictions(const at::Tensor& output, const at::Tensor& targets);

/// Returns a loss's targets for class indices [n, ...] (int64): one-hot [n, classes] of `dtype` for
/// mse, the indices themselves for cross_entropy.
at::Tensor make_targets(Loss kind, const at::Tensor& labels, std::int64_t classes,
                        at::ScalarType dtype);

}  // namespace stratagem::models
