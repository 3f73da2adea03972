// Batch normalisation, compiled for processors with AVX2 and FMA; models/kernels/CMakeLists.txt
// says so to the compiler.
#include "models/kernels/batch_norm_passes.h"
#include "models/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_avx2() {
  static constexpr BatchNormVariant variant = {passes<float>, passes<double>};
  return variant;
}

}  // namespace stratagem::models::kernels
