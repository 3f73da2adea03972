// Of processors between whose instruction sets this project does not distinguish.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {

std::vector<InstructionSet> supported_sets() { return {InstructionSet::baseline}; }

}  // namespace stratagem::models::kernels
