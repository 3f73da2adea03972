// On processors whose instruction sets this project does not tell apart.
#include "models/cpu_kernels/kernels/wide_vectors.h"

namespace stratagem::models::kernels {

bool mkl_leaves_wide_vectors_unused() { return false; }

}  // namespace stratagem::models::kernels
