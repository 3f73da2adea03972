// Which of the variants a processor of the x86-64 family runs.
#include "models/cpu_kernels/kernels/choices.h"

namespace stratagem::models::kernels {

std::vector<const Variant*> choices() {
  std::vector<const Variant*> choices = {&baseline()};
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) return choices;
  choices.push_back(&avx2());
  const bool wide = __builtin_cpu_supports("avx512f") != 0 &&
                    __builtin_cpu_supports("avx512dq") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0;
  if (wide) choices.push_back(&avx512());
  return choices;
}

}  // namespace stratagem::models::kernels
