// This file is compiled for every processor that the program supports.
#include "models/cpu_kernels/kernels/all_loops.h"
