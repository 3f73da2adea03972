// On processors whose instruction sets this project does not tell apart.
#include "models/kernels/batch_norm_variants.h"

namespace stratagem::models::kernels {

const BatchNormVariant& batch_norm_choice() { return batch_norm_baseline(); }

}  // namespace stratagem::models::kernels
