// What the libraries behind ATen make of this processor's vectors.
#pragma once

namespace stratagem::models::kernels {

/// Vectors of 512 bits.
enum class WideVectors {
  left_to_mkl,  // there are none, or MKL uses them
  halved,       // computed in two halves: AMD's Zen 4
  full,         // of full width where MKL does not use them: AMD's processors from Zen 5 on
};

/// Told by instructions, so ranks on hosts that show the same ones compute the same bits.
WideVectors wide_vectors();

}  // namespace stratagem::models::kernels
