// The instruction sets that the loops are compiled for, one file each: baseline.cpp and its like.
#pragma once

namespace stratagem::models::kernels {

enum class InstructionSet { baseline, avx2, avx512 };

}  // namespace stratagem::models::kernels
