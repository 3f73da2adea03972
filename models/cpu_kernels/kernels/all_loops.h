// All loops. Each *_loops.h instantiates its table of kernels for the one instruction set for which
// the file is compiled.
#pragma once

#include "models/cpu_kernels/kernels/attention_loops.h"
#include "models/cpu_kernels/kernels/batch_norm_loops.h"
#include "models/cpu_kernels/kernels/row_loops.h"
#include "models/cpu_kernels/kernels/transposed_product_loops.h"
#include "models/cpu_kernels/kernels/winograd_loops.h"
