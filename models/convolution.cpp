#include "models/convolution.h"

#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>

namespace stratagem::models {
namespace {

// From this batch size on ATen chooses oneDNN by itself.
constexpr std::int64_t kPlainBatch = 16;

// Thread-local like at::GradMode: every device has a thread of its own.
thread_local ConvolutionPolicy current_policy;

bool takes_slow_path(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                     std::int64_t padding) {
  return current_policy.fold_pointwise && x.is_cpu() && x.size(0) < kPlainBatch &&
         weight.size(2) == 1 && weight.size(3) == 1 && stride == 1 && padding == 0 &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) && at::get_num_threads() == 1;
}

}  // namespace

// Rows go into the batch, and single pixels where rows alone do not make a large enough batch.
at::Tensor folded_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight) {
  const std::int64_t n = x.size(0);
  const std::int64_t c = x.size(1);
  const std::int64_t h = x.size(2);
  const std::int64_t w = x.size(3);
  const std::int64_t width = n * h < kPlainBatch ? 1 : w;
  const at::Tensor rows =
      x.permute({0, 2, 3, 1}).reshape({n * h * w / width, 1, width, c}).permute({0, 3, 1, 2});
  const at::Tensor y = at::conv2d(rows, weight);
  return y.permute({0, 2, 3, 1}).reshape({n, h, w, weight.size(0)}).permute({0, 3, 1, 2});
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                       std::int64_t padding) {
  if (takes_slow_path(x, weight, stride, padding)) {
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
