// Of all variants the one that this processor runs best.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {
namespace {

const Variant& best() {
  static const Variant& variant = *choices().back();
  return variant;
}

}  // namespace

AttentionShape attention_shape(std::int64_t sequence, std::int64_t features) {
  constexpr std::int64_t widest = 32;  // values of two of the widest vectors
  const auto rounded = [](std::int64_t count) { return (count + widest - 1) / widest * widest; };
  return {sequence, features, rounded(features), rounded(sequence)};
}

std::int64_t forward_scratch(const AttentionShape& shape) {
  return (shape.features + attention_queries_of_a_block) * shape.keys;
}

std::int64_t backward_scratch(const AttentionShape& shape) { return 2 * forward_scratch(shape); }

template <>
const BatchNormKernels<float>& batch_norm_kernels<float>() {
  return best().of_float.batch_norm;
}

template <>
const BatchNormKernels<double>& batch_norm_kernels<double>() {
  return best().of_double.batch_norm;
}

template <>
const AttentionKernels<float>& attention_kernels<float>() {
  return best().of_float.attention;
}

template <>
const AttentionKernels<double>& attention_kernels<double>() {
  return best().of_double.attention;
}

template <>
const WinogradKernels<float>& winograd_kernels<float>() {
  return best().of_float.winograd;
}

template <>
const WinogradKernels<double>& winograd_kernels<double>() {
  return best().of_double.winograd;
}

TransposedProductKernel transposed_product_kernel() { return best().transposed_product; }

}  // namespace stratagem::models::kernels
