// Two-dimensional convolution without bias and the choice of its fastest memory format and kernel.
//
// On a CPU torch 2.11 has several ways to compute a convolution on a channels_last tensor and does
// not itself choose the fastest:
// - winograd: 3x3 with fewer multiplications (winograd_convolution.h);
// - packed: large weights that are packed once a step (packed_convolution.h);
// - plain: ATen's choice.
// On one thread a 1x1 convolution, a product of [positions, channels in] with [channels in,
// channels out] where positions = batch x height x width of the output, has two more ways:
// - folded: image rows move into the batch (a view on channels_last, and a 1x1 convolution does not
//   mix positions), so that oneDNN runs for any batch size; ATen itself takes one small MKL product
//   a sample below 16 samples without a stride;
// - product: one MKL product over all positions, which reorders no weights.
// Few positions take the product, more positions the fold while the batch is small, the rest is
// plain (docs/explanation/cpu_performance.md has the figures). Reduced precision stays plain.
// float64 has no oneDNN kernel but takes the same ways, so that a check in float64 runs the code of
// float32. bench/programs/bench_convolution.cpp shows which shapes gain.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/cpu_kernels/packed_weights.h"

namespace stratagem::models {

/// Cross-correlates x [n, c, h, w] with weight [o, c, k, k], zero padding on every side. Returns
/// [n, o, (h + 2 padding - k) / stride + 1, (w + 2 padding - k) / stride + 1], channels_last if x
/// is. `packed` belongs to the weight; without it the paths that pack or transform the weight do so
/// in every call.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                       std::int64_t padding, const PackedWeightsPointer& packed = {});

enum class ConvolutionPath { plain, folded, product, packed, winograd };

/// Returns the path of convolution() for these arguments on this thread.
ConvolutionPath convolution_path(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                                 std::int64_t padding, const PackedWeightsPointer& packed = {});

/// Weight is [o, c, 1, 1] without padding. They copy nothing if x is channels_last and, for the
/// product, the stride is 1.
at::Tensor folded_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight);
at::Tensor product_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                         std::int64_t stride);

}  // namespace stratagem::models
