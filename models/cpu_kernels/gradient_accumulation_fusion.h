// Gradients of weights that are added where the sum over the micro-batches lies.
//
// Autograd adds a finished gradient to the sum in a pass of its own, which reads both and writes
// one: three times the bytes of the weights for each micro-batch after the first, and a new tensor
// each time. A matrix product adds while it writes (beta = 1), and an embedding touches the rows
// that it used. Megatron-LM calls the first gradient accumulation fusion.
#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem::models {

/// What a node may add its gradient of `weight` to, on behalf of autograd, which is then given
/// none. Undefined where autograd has to be given it: there is no sum yet, somebody waits for it
/// with a hook, it is asked for without being summed (torch::autograd::grad) or with a gradient of
/// its own, or `weight` is a view of what is trained. In a backward pass, or with no gradient
/// recorded.
at::Tensor gradient_to_accumulate_into(const at::Tensor& weight);

/// Adds left^T right, [m, o] and [m, i], to the gradient that `weight` has: [o, i], or [o, c, k, k]
/// of which i is k * k * c. False, and nothing is changed, where that may not be done or the sum's
/// rows do not lie side by side.
bool accumulate_into_gradient(const at::Tensor& weight, const at::Tensor& left,
                              const at::Tensor& right);

/// Whether anything is called when autograd has summed the gradient of `weight`, or its gradient
/// goes on to what it is computed from.
bool gradient_has_hooks(const at::Tensor& weight);

}  // namespace stratagem::models
