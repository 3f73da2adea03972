// Batch normalisation, compiled for every processor that this program runs on.
#include "models/cpu_kernels/kernels/batch_norm_loops.h"
#include "models/cpu_kernels/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_baseline() {
  static constexpr BatchNormVariant variant = {passes<float>, passes<double>};
  return variant;
}

}  // namespace stratagem::models::kernels
