// What the libraries behind ATen make of this processor's vectors.
#pragma once

namespace stratagem::models::kernels {

/// Whether vectors of 512 bits have their full width here and MKL does not use them: AMD's
/// processors from Zen 5 on, where oneDNN's products are twice as fast (docs/fast_on_cpus.md). Told
/// by an instruction that came with them, so ranks on hosts that show the same instructions compute
/// the same bits.
bool mkl_leaves_wide_vectors_unused();

}  // namespace stratagem::models::kernels
