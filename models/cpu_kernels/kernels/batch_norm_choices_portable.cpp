// On processors whose instruction sets this project does not tell apart.
#include "models/cpu_kernels/kernels/batch_norm_choices.h"

namespace stratagem::models::kernels {

std::vector<const BatchNormVariant*> batch_norm_choices() { return {&batch_norm_baseline()}; }

}  // namespace stratagem::models::kernels
