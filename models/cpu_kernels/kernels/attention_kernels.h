// Causal attention of one head of one sample, forward and backward, on matrices that fit in a
// core's caches. It uses no torch: see batch_norm_kernels.h.
//
// Scores are computed for a block of queries at a time, and again in the backward pass, so that
// nothing of the size sequence x sequence is kept. Keys behind a block's last query are left out
// (Dao et al. 2022, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness").
// A core's second-level cache holds a whole row of scores, so that no running maximum is needed.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

inline constexpr std::int64_t attention_queries_of_a_block = 64;

/// The sizes of one head, see attention_shape().
struct AttentionShape {
  std::int64_t sequence;
  std::int64_t features;
  std::int64_t row;   // features rounded up to whole vectors; the rest of a row is 0
  std::int64_t keys;  // the sequence rounded up to whole vectors
};

// Each file has its own copy, because files are compiled for different instruction sets.
namespace {

constexpr AttentionShape attention_shape(std::int64_t sequence, std::int64_t features) {
  constexpr std::int64_t widest = 32;  // values in two of the widest vectors
  return {sequence, features, (features + widest - 1) / widest * widest,
          (sequence + widest - 1) / widest * widest};
}

/// Returns the number of values in the scratch memory of a pass.
constexpr std::int64_t forward_scratch(const AttentionShape& shape) {
  return (shape.features + attention_queries_of_a_block) * shape.keys;
}
constexpr std::int64_t backward_scratch(const AttentionShape& shape) {
  return 2 * forward_scratch(shape);
}

}  // namespace

/// Matrices are [sequence, row]; query is already scaled. The kernel fills `mixed`.
template <typename T>
struct AttentionForward {
  const T* query;
  const T* key;
  const T* value;
  T* mixed;
  T* scratch;
};

/// Matrices are [sequence, row]. The kernel fills the gradients of the scaled query, key and value.
template <typename T>
struct AttentionBackward {
  const T* query;
  const T* key;
  const T* value;
  const T* mixed_gradient;
  T* query_gradient;
  T* key_gradient;
  T* value_gradient;
  T* scratch;
};

template <typename T>
struct AttentionKernels {
  void (*forward)(const AttentionForward<T>& work, const AttentionShape& shape);
  void (*backward)(const AttentionBackward<T>& work, const AttentionShape& shape);

  template <InstructionSet set>
  static const AttentionKernels& of();
};

}  // namespace stratagem::models::kernels
