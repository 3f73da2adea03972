// Batch normalisation, compiled for processors with AVX2 and FMA;
// models/cpu_kernels/kernels/CMakeLists.txt says so to the compiler.
#include "models/cpu_kernels/kernels/batch_norm_loops.h"
#include "models/cpu_kernels/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_avx2() {
  static constexpr BatchNormVariant variant = {passes<float>, passes<double>};
  return variant;
}

}  // namespace stratagem::models::kernels
