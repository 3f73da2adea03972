#include "models/convolution.h"

#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>

namespace stratagem::models {
namespace {

// From this batch size on ATen chooses oneDNN by itself.
constexpr std::int64_t kPlainBatch = 16;

// Below this many positions (batch x height x width) oneDNN's reordering of the weights, paid once
// a call, costs more than the fold saves.
constexpr std::int64_t kFewestPositions = 128;

// Thread-local like at::GradMode: every device has a thread of its own.
thread_local ConvolutionPolicy current_policy;

}  // namespace

bool takes_fold(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                std::int64_t padding) {
  const bool pointwise = weight.size(2) == 1 && weight.size(3) == 1 && stride == 1 && padding == 0;
  const bool slow_in_aten = x.is_cpu() && !at::isReducedFloatingType(x.scalar_type()) &&
                            x.size(0) < kPlainBatch && at::get_num_threads() == 1;
  const std::int64_t rows = x.size(0) * x.size(2);
  return current_policy.fold_pointwise && pointwise && slow_in_aten && rows >= kPlainBatch &&
         rows * x.size(3) >= kFewestPositions && x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor folded_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight) {
  const std::int64_t n = x.size(0);
  const std::int64_t c = x.size(1);
  const std::int64_t h = x.size(2);
  const std::int64_t w = x.size(3);
  const at::Tensor rows = x.permute({0, 2, 3, 1}).reshape({n * h, 1, w, c}).permute({0, 3, 1, 2});
  const at::Tensor y = at::conv2d(rows, weight);
  return y.permute({0, 2, 3, 1}).reshape({n, h, w, weight.size(0)}).permute({0, 3, 1, 2});
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                       std::int64_t padding) {
  if (takes_fold(x, weight, stride, padding)) {
    return folded_pointwise_convolution(x, weight);
  }
  return at::conv2d(x, weight, {}, {stride, stride}, {padding, padding});
}

ConvolutionPolicy convolution_policy() { return current_policy; }

PointwiseFoldGuard::PointwiseFoldGuard(bool fold_pointwise) : previous_(current_policy) {
  current_policy.fold_pointwise = fold_pointwise;
}

PointwiseFoldGuard::~PointwiseFoldGuard() { current_policy = previous_; }

}  // namespace stratagem::models
