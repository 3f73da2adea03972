// The use of this processor's vectors by the libraries behind ATen.
#pragma once

namespace stratagem::models::kernels {

/// The treatment of 512-bit vectors.
enum class WideVectors {
  left_to_mkl,  // the processor has none, or MKL uses them
  halved,       // the processor computes them in two halves: AMD's Zen 4
  full,         // full width, which MKL does not use: AMD's processors from Zen 5 on
};

/// Checks only instructions, so that ranks on hosts with equal ones compute equal bits.
WideVectors wide_vectors();

}  // namespace stratagem::models::kernels
