// Processors outside the x86-64 family have one set.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {

std::vector<InstructionSet> supported_sets() { return {InstructionSet::baseline}; }

}  // namespace stratagem::models::kernels
