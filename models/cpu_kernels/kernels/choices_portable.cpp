// On processors whose instruction sets this project does not tell apart.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {

std::vector<const Variant*> choices() { return {&baseline()}; }

}  // namespace stratagem::models::kernels
