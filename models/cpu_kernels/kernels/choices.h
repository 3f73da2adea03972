// The choice among kernels compiled for several instruction sets. It lies in another file than the
// kernels: nothing of the standard library may be compiled for an instruction set that other files
// are not compiled for.
#pragma once

#include <vector>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

/// Returns the sets that the processor has, the best one last; never empty.
std::vector<InstructionSet> supported_sets();

/// Returns a table of kernels for the set. `Kernels` has an of<set>().
template <class Kernels>
const Kernels& kernels_of(InstructionSet set) {
  if (set == InstructionSet::avx512) return Kernels::template of<InstructionSet::avx512>();
  if (set == InstructionSet::avx2) return Kernels::template of<InstructionSet::avx2>();
  return Kernels::template of<InstructionSet::baseline>();
}

/// Returns the table that this processor runs best.
template <class Kernels>
const Kernels& best_kernels() {
  static const Kernels& kernels = kernels_of<Kernels>(supported_sets().back());
  return kernels;
}

}  // namespace stratagem::models::kernels
