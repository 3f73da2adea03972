// Which of the variants a processor of the x86-64 family runs.
#include "models/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_choice() {
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0) {
    return batch_norm_avx512();
  }
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return avx2 ? batch_norm_avx2() : batch_norm_baseline();
}

}  // namespace stratagem::models::kernels
