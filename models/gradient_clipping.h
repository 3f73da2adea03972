// Clipping of gradients by their global 2-norm, like torch.nn.utils.clip_grad_norm_ (Pascanu,
// Mikolov, Bengio, 2013, section 3.2).
//
// It has two halves, because a model may span devices and ranks: each has the sum of the squares of
// its part, the parts are added up, and each scales its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stratagem::models {

/// Returns the sum of the squares of all elements of the parameters' gradients, [] (float64) on
/// `device`; a parameter without a gradient adds nothing.
at::Tensor squared_gradient_norm(const std::vector<at::Tensor>& parameters,
                                 const at::Device& device);

/// The first elements of a parameter's gradient, in row-major order.
struct CountedGradient {
  at::Tensor parameter;
  std::int64_t elements = 0;
};

/// Returns the same of parts of gradients.
at::Tensor squared_gradient_norm(const std::vector<CountedGradient>& counted,
                                 const at::Device& device);

/// Divides the parameters' gradients by `scale`, and multiplies them by most / (norm + 1e-6) if
/// that is below 1 and `most` is not 0. The norm is that of the divided gradients.
void clip_gradients(const std::vector<at::Tensor>& parameters, double squared_norm, double most,
                    double scale = 1);

}  // namespace stratagem::models
