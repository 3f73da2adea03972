// Compiled for every processor that this program runs on.
#include "models/cpu_kernels/kernels/all_loops.h"

namespace stratagem::models::kernels {

const Variant& baseline() { return all_loops; }

}  // namespace stratagem::models::kernels
