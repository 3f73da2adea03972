// Compiled for processors with 256-bit vectors; CMakeLists.txt says so
// to the compiler.
#include "models/cpu_kernels/kernels/all_loops.h"

namespace stratagem::models::kernels {

const Variant& avx2() { return all_loops; }

}  // namespace stratagem::models::kernels
