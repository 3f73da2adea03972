// A 3x3 convolution of stride 1 and padding 1 on a CPU by Winograd's minimal filtering F(2x2, 3x3)
// (kernels/winograd_kernels.h): forward and both gradients with 4/9 of the multiplications. The
// weights are transformed once a step and kept like other packed weights (packed_weights.h).
//
// docs/explanation/cpu_performance.md has the figures, including rounding errors. float64 runs the
// same loops, so that a check in it covers float32, except for layers so narrow that their channels
// fill only half a panel in the check.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/packed_weights.h"

namespace stratagem::models {

/// Returns whether it applies: whole vectors of channels and images above a pixel each way, x [n,
/// c, h, w] channels_last, weight [o, c, 3, 3], float32 or float64.
bool winograd_applies(const at::Tensor& x, const at::Tensor& weight,
                      const ConvolutionStride& options);

/// Without `packed` every call transforms the weights.
at::Tensor winograd_convolution(const at::Tensor& x, const at::Tensor& weight,
                                PackedWeightsPointer packed);

}  // namespace stratagem::models
