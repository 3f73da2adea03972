// Causal attention of one head of one sample, forward and backward, on matrices that fit in the
// caches of a core. No torch in here: see attention_loops.h.
//
// Scores are computed for a block of queries at a time, and again in the backward pass, so that
// nothing of the size sequence x sequence is ever kept; keys behind a block's last query are left
// out (Dao et al. 2022, "FlashAttention: Fast and Memory-Efficient Exact Attention with
// IO-Awareness"; a core's second-level cache holds a whole row of scores, so that no running
// maximum is needed).
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

inline constexpr std::int64_t attention_queries_of_a_block = 64;

/// Sizes of one head, by attention_shape().
struct AttentionShape {
  std::int64_t sequence;
  std::int64_t features;
  std::int64_t row;   // features rounded up to whole vectors; the rest of a row is 0
  std::int64_t keys;  // the sequence, likewise
};

// Each file has its own copy, because files are compiled for different instruction sets.
namespace {

constexpr AttentionShape attention_shape(std::int64_t sequence, std::int64_t features) {
  constexpr std::int64_t widest = 32;  // values of two of the widest vectors
  return {sequence, features, (features + widest - 1) / widest * widest,
          (sequence + widest - 1) / widest * widest};
}

/// Values that the scratch memory of a pass holds.
constexpr std::int64_t forward_scratch(const AttentionShape& shape) {
  return (shape.features + attention_queries_of_a_block) * shape.keys;
}
constexpr std::int64_t backward_scratch(const AttentionShape& shape) {
  return 2 * forward_scratch(shape);
}

}  // namespace

/// All [sequence, row]; query is scaled already. Fills `mixed`.
template <typename T>
struct AttentionForward {
  const T* query;
  const T* key;
  const T* value;
  T* mixed;
  T* scratch;
};

/// All [sequence, row]; fills the last three with the gradients of the scaled query, key, value.
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
