#include "models/cpu_kernels/convolution.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>

#include <optional>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/kernel_choice.h"
#include "models/cpu_kernels/kernels/wide_vectors.h"
#include "models/cpu_kernels/linear.h"
#include "models/cpu_kernels/packed_convolution.h"
#include "models/cpu_kernels/winograd_convolution.h"

namespace stratagem::models {
namespace {

// The batch size from which on ATen itself chooses oneDNN.
constexpr std::int64_t kPlainBatch = 16;

// Up to this many positions MKL's product costs less than oneDNN's reordering of the weights. The
// crossing lies near 500 on a Zen 4 core, and lower if oneDNN is the faster of the two.
constexpr std::int64_t kProductPositions = 256;

// The size of weights from which on reordering them in every call is measurable.
constexpr std::int64_t kLargeWeights = 1 << 18;

}  // namespace

ConvolutionPath convolution_path(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                                 std::int64_t padding, const PackedWeightsPointer& packed) {
  if (!may_take_own_kernels(x, "convolution")) return ConvolutionPath::plain;
  if (winograd_applies(x, weight, {stride, padding})) return ConvolutionPath::winograd;
  if ((packed ? packed->full_size(weight) : weight.numel()) >= kLargeWeights) {
    return ConvolutionPath::packed;
  }
  // With several threads ATen takes oneDNN for every 1x1 convolution.
  if (at::get_num_threads() > 1) return ConvolutionPath::plain;
  if (weight.size(2) != 1 || weight.size(3) != 1 || padding != 0) return ConvolutionPath::plain;
  const std::int64_t rows = x.size(0) * ((x.size(2) - 1) / stride + 1);
  const std::int64_t positions = rows * ((x.size(3) - 1) / stride + 1);
  if (positions <= kProductPositions) return ConvolutionPath::product;
  const bool slow_in_aten = stride == 1 && x.size(0) < kPlainBatch;
  return slow_in_aten && rows >= kPlainBatch ? ConvolutionPath::folded : ConvolutionPath::plain;
}

at::Tensor folded_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight) {
  const std::int64_t n = x.size(0);
  const std::int64_t c = x.size(1);
  const std::int64_t h = x.size(2);
  const std::int64_t w = x.size(3);
  const at::Tensor rows = x.permute({0, 2, 3, 1}).reshape({n * h, 1, w, c}).permute({0, 3, 1, 2});
  const at::Tensor y = plain_convolution(rows, weight, {});
  return y.permute({0, 2, 3, 1}).reshape({n, h, w, weight.size(0)}).permute({0, 3, 1, 2});
}

at::Tensor product_pointwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                         std::int64_t stride) {
  const at::Tensor sampled =
      stride == 1 ? x : x.slice(2, 0, std::nullopt, stride).slice(3, 0, std::nullopt, stride);
  const at::Tensor pixels = sampled.permute({0, 2, 3, 1});
  const at::Tensor matrix = weight.permute({0, 2, 3, 1}).reshape({weight.size(0), -1});
  const at::Tensor rows = pixels.reshape({-1, x.size(1)});
  const bool by_linear =
      current_deferred_weight_gradients() || kernels::wide_vectors() == kernels::WideVectors::full;
  const at::Tensor y =
      by_linear ? models::linear(rows, matrix, at::Tensor()) : at::mm(rows, matrix.t());
  return y.view({pixels.size(0), pixels.size(1), pixels.size(2), weight.size(0)})
      .permute({0, 3, 1, 2});
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride,
                       std::int64_t padding, const PackedWeightsPointer& packed) {
  switch (convolution_path(x, weight, stride, padding, packed)) {
    case ConvolutionPath::folded:
      return folded_pointwise_convolution(x, weight);
    case ConvolutionPath::product:
      return product_pointwise_convolution(x, weight, stride);
    case ConvolutionPath::winograd:
      return winograd_convolution(x, weight, packed);
    case ConvolutionPath::packed:
      return packed_convolution(x, weight, {stride, padding}, packed);
    case ConvolutionPath::plain:
      break;
  }
  return plain_convolution(x, weight, {stride, padding});
}

}  // namespace stratagem::models
