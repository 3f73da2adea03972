#include "models/cpu_kernels/kernels/wide_vectors.h"

namespace stratagem::models::kernels {

/// Distinguishes Zen 4 from Zen 5 by VP2INTERSECT, which only Zen 5 has.
WideVectors wide_vectors() {
  if (__builtin_cpu_is("amd") == 0 || __builtin_cpu_supports("avx512f") == 0) {
    return WideVectors::left_to_mkl;
  }
  return __builtin_cpu_supports("avx512vp2intersect") != 0 ? WideVectors::full
                                                           : WideVectors::halved;
}

}  // namespace stratagem::models::kernels
