// Compiled for processors with 256-bit vectors: CMakeLists.txt has the compiler's options.
#include "models/cpu_kernels/kernels/all_loops.h"
