// A convolution of large weights on a CPU, each of its three products by the kernel that leaves the
// weights where they lie.
//
// - The output and the input's gradient: oneDNN on weights that are packed once a step (see
//   packed_weights.h); the input's gradient is the transposed convolution of the output's.
// - The weight's gradient: one product of the output's gradient with the gathered input. ATen's
//   comes out of oneDNN in a layout of its own and is copied to channels_last in two steps: 5 ms
//   for 512 to 512 channels of 3x3, whatever the batch. A 3x3 of 256 channels and the 1x1 of up
//   to 256 to 1024 stay with ATen, whose copies cost less than oneDNN's kernel gains; but where
//   there is a sum over earlier micro-batches, the product adds to it while it writes, and theirs
//   is one too.
//
// A 3x3 of stride 1 rarely comes here (winograd_convolution.h).
//
// docs/explanation/cpu_performance.md has the figures; bench/programs/bench_convolution.cpp tells
// when they change.
//
// Other number formats take ATen's kernels on a copy that is kept as packed weights are, in the
// same autograd node, and the same product for the weight's gradient, so that a check in float64
// runs the code that float32 runs.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/packed_weights.h"

namespace stratagem::models {

/// x [n, c, h, w] channels_last, weight [o, c, k, k]. Without `packed` the weights are packed in
/// every call.
at::Tensor packed_convolution(const at::Tensor& x, const at::Tensor& weight,
                              const ConvolutionStride& options, PackedWeightsPointer packed);

/// The gradient of the weight, channels_last, from that of the output [n, o, h', w'], as one
/// product. Undefined once it was added to the one that the weight has (see
/// gradient_accumulation_fusion.h).
at::Tensor weight_gradient_by_product(const at::Tensor& x, const at::Tensor& gradient,
                                      const at::Tensor& weight, const ConvolutionStride& options);

}  // namespace stratagem::models
