// A convolution of large weights on a CPU, whose three products run on kernels that do not copy the
// weights in every call.
//
// - The output and the input's gradient: oneDNN on weights that are packed once a step (see
//   packed_weights.h); the input's gradient is the transposed convolution of the output's.
// - The weight's gradient: one product of the output's gradient with the gathered input. oneDNN
//   gives ATen the gradient in its own layout, which two steps copy to channels_last: 5 ms for 512
//   to 512 channels of 3x3, for any batch. A 3x3 of 256 channels and the 1x1 of up to 256 to 1024
//   stay with ATen, whose copies cost less than oneDNN's kernel gains. With a sum over earlier
//   micro-batches they also take the product, which adds while it writes.
//
// A 3x3 of stride 1 rarely comes here (winograd_convolution.h).
//
// docs/explanation/cpu_performance.md has the figures; bench/programs/bench_convolution.cpp shows
// when they change.
//
// Other number formats take ATen's kernels on a copy that is kept like packed weights, in the same
// autograd node, and the same product for the weight's gradient, so that a check in float64 runs
// the code of float32.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/packed_weights.h"

namespace stratagem::models {

/// Convolves x [n, c, h, w] channels_last with weight [o, c, k, k]. Without `packed` every call
/// packs the weights.
at::Tensor packed_convolution(const at::Tensor& x, const at::Tensor& weight,
                              const ConvolutionStride& options, PackedWeightsPointer packed);

/// Computes the weight's gradient, channels_last, from the output's [n, o, h', w'] as one product.
/// Returns undefined after adding it to the weight's existing gradient (see
/// gradient_accumulation_fusion.h).
at::Tensor weight_gradient_by_product(const at::Tensor& x, const at::Tensor& gradient,
                                      const at::Tensor& weight, const ConvolutionStride& options);

}  // namespace stratagem::models
