// Clipping of gradients by their global 2-norm, as torch.nn.utils.clip_grad_norm_ does (Pascanu,
// Mikolov, Bengio, 2013, section 3.2).
//
// In two halves, because a model may be spread over devices and ranks: each has the sum of the
// squares of its part, the parts are added up, and each scales its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stratagem::models {

/// The sum of the squares of all elements of the parameters' gradients, [] (float64) on `device`;
/// a parameter without one adds nothing.
at::Tensor squared_gradient_norm(const std::vector<at::Tensor>& parameters,
                                 const at::Device& device);

/// Divides the parameters' gradients by `scale`, and multiplies them by most / (norm + 1e-6) where
/// that is below 1; `most` 0: not that. The norm is that of the gradients once they are divided.
void clip_gradients(const std::vector<at::Tensor>& parameters, double squared_norm, double most,
                    double scale = 1);

}  // namespace stratagem::models
