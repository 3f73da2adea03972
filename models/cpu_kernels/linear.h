// y = x W^T + b and the choice of the fastest kernel for its three products.
//
// On the CPU ATen gives float32 products to MKL, which does not use the full vector width of every
// processor; oneDNN does (the `mkldnn::_linear_pointwise` operator). oneDNN computes the weight's
// gradient on Zen 5, where MKL leaves half of that width unused, a kernel of our own on Zen 4, and
// MKL elsewhere (docs/explanation/cpu_performance.md has the figures).
// bench/programs/bench_linear.cpp shows when they change. Other number formats and devices take
// ATen's products in the same autograd node, so that a check in float64 runs that node; the second
// verdict (bench/oracle/layer_comparison.h) checks the kernels.
#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem::models {

/// Computes x W^T + b of x [..., in], weight [out, in] and bias [out] or undefined: [..., out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Until the end of the scope, linear() on this thread computes no product and returns zeros: the
/// output of a repeated forward pass that nobody reads. Its backward pass is as usual.
class UnreadProductGuard {
 public:
  UnreadProductGuard();
  ~UnreadProductGuard();
  UnreadProductGuard(const UnreadProductGuard&) = delete;
  UnreadProductGuard& operator=(const UnreadProductGuard&) = delete;

 private:
  bool previous_;
};

/// Computes the products without autograd; rows are x.flatten(0, -2).
at::Tensor linear_product(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear_input_gradient(const at::Tensor& gradient_rows, const at::Tensor& weight);
at::Tensor linear_weight_gradient(const at::Tensor& rows, const at::Tensor& gradient_rows);

/// Adds left^T right, [m, o] and [m, i], to sum [o, i], whose rows are contiguous.
void add_transposed_product(at::Tensor sum, const at::Tensor& left, const at::Tensor& right);

/// Returns the weight's gradient for its autograd node, or undefined after adding it to the
/// weight's existing gradient (see gradient_accumulation_fusion.h).
at::Tensor accumulated_weight_gradient(const at::Tensor& weight, const at::Tensor& rows,
                                       const at::Tensor& gradient_rows);

}  // namespace stratagem::models
