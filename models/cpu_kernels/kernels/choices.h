// Which variants the processor can run. Apart from them: nothing of the standard library may be
// compiled for an instruction set that other files are not.
#pragma once

#include <vector>

#include "models/cpu_kernels/kernels/variants.h"

namespace stratagem::models::kernels {

/// The best one last; never empty.
std::vector<const Variant*> choices();

}  // namespace stratagem::models::kernels
