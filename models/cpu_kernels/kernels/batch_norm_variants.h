// The kernels as compiled for each instruction set.
#pragma once

#include "models/cpu_kernels/kernels/batch_norm_kernels.h"

namespace stratagem::models::kernels {

struct BatchNormVariant {
  BatchNormKernels<float> of_float;
  BatchNormKernels<double> of_double;
};

const BatchNormVariant& batch_norm_baseline();
const BatchNormVariant& batch_norm_avx2();
const BatchNormVariant& batch_norm_avx512();

}  // namespace stratagem::models::kernels
