// Of all variants the one that this processor runs best.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {
namespace {

const Variant& best() {
  static const Variant& variant = *choices().back();
  return variant;
}

}  // namespace

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

}  // namespace stratagem::models::kernels
