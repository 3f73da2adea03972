// This file is compiled for processors with 512-bit vectors; see the options in CMakeLists.txt.
#include "models/cpu_kernels/kernels/all_loops.h"
