// Two-dimensional convolution without bias, and the one place that knows which memory format and
// kernel it runs best on.
//
// On a CPU torch 2.11 has several ways to compute one on a channels_last tensor, and by itself it
// does not choose the fastest:
// - winograd: 3x3 ones with fewer multiplications (winograd_convolution.h);
// - packed: on weights that are packed once a step, for large weights (packed_convolution.h);
// - plain: what ATen does.
// On one thread a 1x1 convolution, a product of [positions, channels in] with [channels in,
// channels out] where positions = batch x height x width of the output, has two ways more:
// - folded: image rows move into the batch (on channels_last that is a view, and a 1x1 convolution
//   does not mix positions), so that oneDNN runs whatever the batch size; by itself ATen takes one
//   small MKL product a sample below 16 samples without a stride;
// - product: one MKL product over all positions, for which no weights are reordered.
// So few positions take the product, more of them the fold while the batch is small, the rest is
// plain (docs/explanation/cpu_performance.md has the figures). Reduced precision is left alone;
// float64 has no oneDNN kernel but goes the same ways, so that a check in float64 runs the code
// that float32 runs. bench/programs/bench_convolution.cpp tells for which shapes this pays.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/cpu_kernels/packed_weights.h"

namespace stratagem::models {

/// Cross-correlation of x [n, c, h, w] with weight [o, c, k, k], zero padding on every side.
/// Returns [n, o, (h + 2 padding - k) / stride + 1, (w + 2 padding - k) / stride + 1],
/// channels_last where x is. `packed` belongs to the weight; without it the paths that pack or
/// transform the weight do so in every call.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                       std::int64_t padding, const PackedWeightsPointer& packed = {});

enum class ConvolutionPath { plain, folded, product, packed, winograd };

/// The way that convolution() goes for these arguments on this thread.
ConvolutionPath convolution_path(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                                 std::int64_t padding, const PackedWeightsPointer& packed = {});

/// Weight is [o, c, 1, 1] and nothing is padded. Free of copies where x is channels_last and, for
/// the product, the stride is 1.
at::Tensor folded_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight);
at::Tensor product_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                         std::int64_t stride);

}  // namespace stratagem::models
