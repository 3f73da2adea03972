// Compiled for every processor that this program runs on.
#include "models/cpu_kernels/kernels/all_loops.h"
