// Weight gradients that are added directly to the sum over the micro-batches.
//
// Autograd adds a finished gradient to the sum in a separate pass, which reads both and writes one:
// three times the bytes of the weights for each micro-batch after the first, and a new tensor each
// time. A matrix product adds while it writes (beta = 1), and an embedding touches only its used
// rows. Megatron-LM calls the first gradient accumulation fusion.
#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem::models {

/// Returns the sum to which a node may add its gradient of `weight`, instead of returning it to
/// autograd. Returns undefined if autograd needs the gradient: there is no sum yet, a hook waits
/// for it, the caller asks for it without summing (torch::autograd::grad) or with a gradient of its
/// own, or `weight` is a view of a parameter. Call it in a backward pass or with no gradient
/// recorded.
at::Tensor gradient_to_accumulate_into(const at::Tensor& weight);

/// Adds left^T right, [m, o] and [m, i], to the gradient of `weight`: [o, i], or [o, c, k, k] with
/// i = k * k * c. Returns false, and changes nothing, if that is not allowed or the sum's rows have
/// gaps.
bool accumulate_into_gradient(const at::Tensor& weight, const at::Tensor& left,
                              const at::Tensor& right);

/// Returns whether a hook runs after autograd has summed the gradient of `weight`, or the gradient
/// flows on to the tensors from which `weight` is computed.
bool gradient_has_hooks(const at::Tensor& weight);

}  // namespace stratagem::models
