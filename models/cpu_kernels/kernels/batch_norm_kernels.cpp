#include "models/cpu_kernels/kernels/batch_norm_kernels.h"

#include "models/cpu_kernels/kernels/batch_norm_choices.h"

namespace stratagem::models::kernels {
namespace {

const BatchNormVariant& best() {
  static const BatchNormVariant& variant = *batch_norm_choices().back();
  return variant;
}

}  // namespace

template <>
const BatchNormKernels<float>& batch_norm_kernels<float>() {
  return best().of_float;
}

template <>
const BatchNormKernels<double>& batch_norm_kernels<double>() {
  return best().of_double;
}

}  // namespace stratagem::models::kernels
