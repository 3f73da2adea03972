// All kernels, as the one instruction set that a file is compiled for has them.
#pragma once

#include "models/cpu_kernels/kernels/attention_loops.h"
#include "models/cpu_kernels/kernels/batch_norm_loops.h"
#include "models/cpu_kernels/kernels/transposed_product_loops.h"
#include "models/cpu_kernels/kernels/variants.h"
#include "models/cpu_kernels/kernels/winograd_loops.h"

namespace stratagem::models::kernels {
namespace {

inline constexpr Variant all_loops = {
    {batch_norm_passes<float>, attention_passes<float>, winograd_passes<float>},
    {batch_norm_passes<double>, attention_passes<double>, winograd_passes<double>},
    transposed_product};

}  // namespace
}  // namespace stratagem::models::kernels
