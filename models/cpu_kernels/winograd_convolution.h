// A 3x3 convolution of stride 1 and padding 1 on a CPU by Winograd's minimal filtering F(2x2, 3x3)
// (kernels/winograd_kernels.h): forward and both gradients with 4/9 of the multiplications. The
// weights are transformed once a step and kept as other packed weights are (packed_weights.h).
//
// docs/explanation/cpu_performance.md has the figures, rounding errors among them. In float64 the
// same loops run, so that a check there runs what float32 runs, but for layers that are so narrow
// in it that they have half a panel of channels.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/packed_weights.h"

namespace stratagem::models {

/// Whether it is such a convolution, of whole vectors of channels and images of more than a pixel
/// each way: x [n, c, h, w] channels_last, weight [o, c, 3, 3], float32 or float64.
bool winograd_applies(const at::Tensor& x, const at::Tensor& weight,
                      const ConvolutionStride& options);

/// Without `packed` the weights are transformed in every call.
at::Tensor winograd_convolution(const at::Tensor& x, const at::Tensor& weight,
                                PackedWeightsPointer packed);

}  // namespace stratagem::models
