#include "models/kernels/batch_norm_kernels.h"

#include "models/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

template <>
const BatchNormKernels<float>& batch_norm_kernels<float>() {
  return batch_norm_choice().of_float;
}

template <>
const BatchNormKernels<double>& batch_norm_kernels<double>() {
  return batch_norm_choice().of_double;
}

}  // namespace stratagem::models::kernels
