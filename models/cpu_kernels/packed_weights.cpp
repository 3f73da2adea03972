#include "models/cpu_kernels/packed_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <cmath>

#include "models/cpu_kernels/functions.h"

namespace stratagem::models {
namespace {

constexpr std::array<std::int64_t, 2> kUndilated = {1, 1};

std::array<std::int64_t, 2> twice(std::int64_t value) { return {value, value}; }

at::Tensor copy_of(const at::Tensor& weight) { return weight.detach().clone(); }

}  // namespace

bool PackedWeights::is_packed(const at::Tensor& weight) {
  return weight.scalar_type() == at::kFloat && at::globalContext().userEnabledMkldnn();
}

std::int64_t PackedWeights::full_size(const at::Tensor& weight) const {
  return std::llround(static_cast<double>(weight.numel()) / (model_width_ * model_width_));
}

const at::Tensor& PackedWeights::Packed::of(const at::Tensor& weight,
                                            c10::function_ref<at::Tensor()> pack) {
  const void* const now = weight.const_data_ptr();
  if (!tensor.defined() || data != now || version != weight._version()) {
    tensor = pack();
    data = now;
    version = weight._version();
  }
  return tensor;
}

const at::Tensor& PackedWeights::transformed(const at::Tensor& weight, bool backwards,
                                             c10::function_ref<at::Tensor()> transform) {
  return (backwards ? transformed_backwards_ : transformed_).of(weight, transform);
}

const at::Tensor& PackedWeights::for_forward(const at::Tensor& weight, at::IntArrayRef input,
                                             const ConvolutionStride& options) {
  using Signature = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                               std::int64_t, at::OptionalIntArrayRef);
  static const auto reorder = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("mkldnn::_reorder_convolution_weight", "")
                                  .typed<Signature>();
  return forward_.of(weight, [&] {
    return is_packed(weight) ? reorder.call(weight.detach(), twice(options.padding),
                                            twice(options.stride), kUndilated, 1, input)
                             : copy_of(weight);
  });
}

const at::Tensor& PackedWeights::for_backward(const at::Tensor& weight, at::IntArrayRef gradient,
                                              at::IntArrayRef output_padding,
                                              const ConvolutionStride& options) {
  using Signature = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                               at::IntArrayRef, std::int64_t, at::OptionalIntArrayRef);
  static const auto reorder =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_reorder_convolution_transpose_weight", "")
          .typed<Signature>();
  return backward_.of(weight, [&] {
    return is_packed(weight) ? reorder.call(weight.detach(), twice(options.padding), output_padding,
                                            twice(options.stride), kUndilated, 1, gradient)
                             : copy_of(weight);
  });
}

}  // namespace stratagem::models
