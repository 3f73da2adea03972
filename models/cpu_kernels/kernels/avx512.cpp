// Compiled for processors with 512-bit vectors; CMakeLists.txt says so
// to the compiler.
#include "models/cpu_kernels/kernels/all_loops.h"

namespace stratagem::models::kernels {

const Variant& avx512() { return all_loops; }

}  // namespace stratagem::models::kernels
