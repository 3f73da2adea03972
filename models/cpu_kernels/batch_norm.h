// Batch normalisation, the sum and ReLU behind it, and the choice of their fastest kernel.
//
// ATen runs the normalisation, the sum of a residual block and the ReLU as separate functions that
// each read and write whole activations: on one core, where memory gives a few bytes a cycle, a
// sixth of a ResNet-50 step. In training, for a channels_last tensor of float32 or float64 on a
// CPU, all three are one autograd node here: forward reads x twice (statistics, then the rest),
// backward reads x and the gradient twice, and without a sum the ReLU's mask is recomputed from x.
// A device's threads share the rows, so the rounding of sums depends on the number of threads.
// bench/programs/bench_batch_norm.cpp measures the gain. ATen computes everything else.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/cpu_kernels/functions.h"

namespace stratagem::models {

/// The operations on the normalised values.
struct FusedEpilogue {
  at::Tensor addend;  // of x's shape; undefined: nothing is added
  bool relu = false;
};

/// Normalises x [n, c, h, w] over all dimensions but c, then scales and shifts it. Training updates
/// the running statistics (Ioffe, Szegedy 2015, algorithms 1 and 2; the running variance is
/// unbiased, as in PyTorch).
at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                      const BatchNormOptions& options, const FusedEpilogue& after = {});

}  // namespace stratagem::models
