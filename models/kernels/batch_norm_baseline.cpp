// Batch normalisation, compiled for every processor that this program runs on.
#include "models/kernels/batch_norm_passes.h"
#include "models/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_baseline() {
  static constexpr BatchNormVariant variant = {passes<float>, passes<double>};
  return variant;
}

}  // namespace stratagem::models::kernels
