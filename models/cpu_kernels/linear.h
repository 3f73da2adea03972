// y = x W^T + b, and the one place that knows which kernel its three products run best on.
//
// On the CPU ATen hands float32 products to MKL, which does not use the full vector width of every
// processor; oneDNN does (the `mkldnn::_linear_pointwise` operator). The weight's gradient is
// oneDNN's on Zen 5, where MKL leaves half of that width unused, a kernel of our own on Zen 4, and
// elsewhere MKL's (docs/explanation/cpu_performance.md has the figures).
// bench/programs/bench_linear.cpp tells when that changes. Other number formats and devices take
// ATen's products in the same autograd node, so that a check in float64 runs that node; the kernels
// are checked by the second verdict (bench/oracle/layer_comparison.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem::models {

/// x is [..., in], weight [out, in], bias [out] or undefined; returns [..., out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The products behind it, without autograd; rows are x.flatten(0, -2).
at::Tensor linear_product(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear_input_gradient(const at::Tensor& gradient_rows, const at::Tensor& weight);
at::Tensor linear_weight_gradient(const at::Tensor& rows, const at::Tensor& gradient_rows);

/// left^T right, [m, o] and [m, i], is added to sum [o, i], whose rows lie side by side.
void add_transposed_product(at::Tensor sum, const at::Tensor& left, const at::Tensor& right);

/// The weight's gradient as its autograd node returns it: undefined once it was added to the one
/// that the weight has (see gradient_accumulation_fusion.h).
at::Tensor accumulated_weight_gradient(const at::Tensor& weight, const at::Tensor& rows,
                                       const at::Tensor& gradient_rows);

}  // namespace stratagem::models
