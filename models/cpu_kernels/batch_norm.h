// Batch normalisation and what stands behind it, and the one place that knows how both run best.
//
// ATen runs the normalisation, the sum of a residual block and the ReLU as functions of their own,
// and each reads and writes whole activations: on one core, where memory gives a few bytes a cycle,
// a sixth of a ResNet-50 step. In training, for a channels_last tensor of float32 or float64 on a
// CPU, all three are one autograd node here: forward reads x twice (statistics, then the rest),
// backward reads x and the gradient twice, and without a sum the ReLU's mask is recomputed from x.
// A device's threads share the rows, so that its sums round by how many they are.
// bench/programs/bench_batch_norm.cpp tells what that gains. Everything else goes to ATen.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/cpu_kernels/functions.h"

namespace stratagem::models {

/// What is done with the normalised values.
struct FusedEpilogue {
  at::Tensor addend;  // added, of x's shape; undefined: nothing
  bool relu = false;
};

/// x [n, c, h, w], normalised over all but c, then scaled and shifted; in training the running
/// statistics move (Ioffe, Szegedy 2015, algorithms 1 and 2; the running variance is the unbiased
/// one, as PyTorch's).
at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                      const BatchNormOptions& options, const FusedEpilogue& after = {});

}  // namespace stratagem::models
