// The kernels as compiled for each instruction set.
#pragma once

#include "models/cpu_kernels/kernels/attention_kernels.h"
#include "models/cpu_kernels/kernels/batch_norm_kernels.h"
#include "models/cpu_kernels/kernels/transposed_product_kernels.h"
#include "models/cpu_kernels/kernels/winograd_kernels.h"

namespace stratagem::models::kernels {

template <typename T>
struct KernelsOf {
  BatchNormKernels<T> batch_norm;
  AttentionKernels<T> attention;
  WinogradKernels<T> winograd;
};

struct Variant {
  KernelsOf<float> of_float;
  KernelsOf<double> of_double;
  TransposedProductKernel transposed_product;
};

const Variant& baseline();
const Variant& avx2();
const Variant& avx512();

}  // namespace stratagem::models::kernels
