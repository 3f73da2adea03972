// Functions of a Llama block. On CPUs in float32 and float64 each is a loop of our own that reads
// and writes memory once; otherwise, and with the reference kernels, ATen's functions compute it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stratagem::models {

/// Divides the last dimension by its root mean square, epsilon 1e-5, then scales it. Sums of 16-bit
/// values are float32. While weight gradients are deferred (see deferred_weight_gradients.h), its
/// backward pass has two halves.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight);

/// Returns silu(gate) * up [..., hidden] of [gate, up] in the last dimension of `gate_up`, [..., 2
/// hidden] (Shazeer 2020, "GLU Variants Improve Transformer"). The backward pass keeps `gate_up`
/// alone.
at::Tensor gated_silu(const at::Tensor& gate_up);

/// The heads of a block: `groups` pairs of a key and a value head, each shared by `queries` query
/// heads (Ainslie et al. 2023, "GQA").
struct GroupedHeads {
  std::int64_t groups = 1;
  std::int64_t queries = 1;  // of a group

  std::int64_t count() const { return groups * queries; }
};

/// Cosines and sines of the rotations, [sequence, 1, 1, half a head's features] each, contiguous.
struct Rotation {
  at::Tensor cosine;
  at::Tensor sine;
};

/// Turns grouped heads, [n, sequence, groups (queries + 2) features], into the rotated queries, the
/// rotated keys and the values of all heads, [n, sequence, 3 heads features].
at::Tensor spread_heads(const at::Tensor& grouped, const Rotation& angles,
                        const GroupedHeads& heads);

}  // namespace stratagem::models
