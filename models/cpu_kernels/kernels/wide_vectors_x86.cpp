#include "models/cpu_kernels/kernels/wide_vectors.h"

namespace stratagem::models::kernels {

/// Zen 4 splits such vectors in halves; it has no VP2INTERSECT, which Zen 5 has.
bool mkl_leaves_wide_vectors_unused() {
  return __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512vp2intersect") != 0;
}

}  // namespace stratagem::models::kernels
