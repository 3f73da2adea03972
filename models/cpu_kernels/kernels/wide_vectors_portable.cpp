// Processors whose instruction sets this project does not distinguish.
#include "models/cpu_kernels/kernels/wide_vectors.h"

namespace stratagem::models::kernels {

WideVectors wide_vectors() { return WideVectors::left_to_mkl; }

}  // namespace stratagem::models::kernels
