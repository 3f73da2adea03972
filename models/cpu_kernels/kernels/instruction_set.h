// The instruction sets for which the loops are compiled, one file each: baseline.cpp and so on. The
// body of a table's of<set>() differs between files, so each file instantiates only its own set.
#pragma once

namespace stratagem::models::kernels {

enum class InstructionSet { baseline, avx2, avx512 };

}  // namespace stratagem::models::kernels
