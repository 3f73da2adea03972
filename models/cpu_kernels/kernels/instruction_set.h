// The instruction sets that the loops are compiled for, one file each: baseline.cpp and its like.
// The body of a table's of<set>() differs from file to file, so each file instantiates its own set
// alone.
#pragma once

namespace stratagem::models::kernels {

enum class InstructionSet { baseline, avx2, avx512 };

}  // namespace stratagem::models::kernels
