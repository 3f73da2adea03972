// y = x W^T + b, and the one place that knows which kernel its three products run best on.
//
// On the CPU ATen hands float32 products to MKL, which does not use the full vector width of every
// processor; oneDNN does (the `mkldnn::_linear_pointwise` operator). Measured on a Zen 4 core for
// the layers of gpt-small, 128 and 1024 rows: forward 81 to 105 GFLOP/s against 63 to 95, the
// input's gradient 83 to 109 against 60 to 93; the weight's gradient is MKL's (85 to 99 against 74
// to 95 with strided operands), so it stays there. All three together: 1.05 to 1.20 times as fast.
// bench/programs/bench_linear.cpp tells when that changes. Other number formats and devices take
// ATen's products in the same autograd node, so that a check in float64 runs the code that float32
// runs.
#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem::models {

/// x is [..., in], weight [out, in], bias [out] or undefined; returns [..., out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The products behind it, without autograd; rows are x.flatten(0, -2).
at::Tensor linear_product(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear_input_gradient(const at::Tensor& gradient_rows, const at::Tensor& weight);
at::Tensor linear_weight_gradient(const at::Tensor& rows, const at::Tensor& gradient_rows);

/// The weight's gradient as its autograd node returns it: undefined once it was added to the one
/// that the weight has (see gradient_accumulation_fusion.h).
at::Tensor accumulated_weight_gradient(const at::Tensor& weight, const at::Tensor& rows,
                                       const at::Tensor& gradient_rows);

}  // namespace stratagem::models
