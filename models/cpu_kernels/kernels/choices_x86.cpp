// The instruction sets of a processor of the x86-64 family.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {

std::vector<InstructionSet> supported_sets() {
  std::vector<InstructionSet> sets = {InstructionSet::baseline};
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) return sets;
  sets.push_back(InstructionSet::avx2);
  const bool wide = __builtin_cpu_supports("avx512f") != 0 &&
                    __builtin_cpu_supports("avx512dq") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0;
  if (wide) sets.push_back(InstructionSet::avx512);
  return sets;
}

}  // namespace stratagem::models::kernels
