// Batch normalisation, compiled for processors with 512-bit vectors;
// models/cpu_kernels/kernels/CMakeLists.txt says so to the compiler.
#include "models/cpu_kernels/kernels/batch_norm_loops.h"
#include "models/cpu_kernels/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_avx512() {
  static constexpr BatchNormVariant variant = {passes<float>, passes<double>};
  return variant;
}

}  // namespace stratagem::models::kernels
