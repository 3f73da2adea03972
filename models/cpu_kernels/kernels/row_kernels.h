// Functions of a transformer's rows, which read and write memory once: the root mean square norm,
// the gated SiLU, the rotation of heads and dropout. They use no torch: see batch_norm_kernels.h.
// All rows are contiguous.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

/// Computes y = x * inverse * weight for rows of `features`, where `inverse` is 1 over the root of
/// the mean square plus `epsilon`.
template <typename T>
struct RmsNormWork {
  const T* x;       // [rows, features]
  const T* weight;  // [features]
  T* y;
  T* inverse;  // [rows]
  T epsilon;
};

/// Computes the derivatives; one that is null is left out. Only that of x reads `weight`.
template <typename T>
struct RmsNormGradients {
  const T* gradient;  // [rows, features], as x
  const T* x;
  const T* weight;
  const T* inverse;  // [rows]
  T* of_x;
  T* of_weight;  // [features]: added to
};

/// Heads of a position in groups that share a key and a value. Each row of grouped heads is
/// [groups, queries + 2, features]: the queries of a group, its key and its value. Each row of
/// spread heads is [3, groups, queries, features]: the queries, the keys and the values of all
/// heads.
struct GroupedHeads {
  std::int64_t sequence;  // the angles begin anew after so many rows
  std::int64_t groups;
  std::int64_t queries;
  std::int64_t features;  // of a head; even
};

/// Angles of [sequence, features / 2].
template <typename T>
struct Angles {
  const T* cosine;
  const T* sine;
};

/// Sets elements to zero and multiplies the others by `scale`. An element is kept if the upper half
/// of its random bits is at least `threshold`. The bits of feature f are the number f of splitmix64
/// after the row's key (Steele, Lea and Flood 2014).
template <typename T>
struct DropWork {
  const T* x;                // [rows, features]
  const std::int64_t* keys;  // [rows]
  T* y;
  std::uint64_t threshold;  // below 2^32
  T scale;
};

template <typename T>
struct RowKernels {
  void (*rms_norm)(const RmsNormWork<T>& work, std::int64_t rows, std::int64_t features);
  void (*rms_norm_gradients)(const RmsNormGradients<T>& work, std::int64_t rows,
                             std::int64_t features);
  /// Computes silu(gate) * up from rows [gate, up] of 2 x `hidden` values.
  void (*gate)(const T* gate_up, T* gated, std::int64_t rows, std::int64_t hidden);
  void (*gate_gradient)(const T* gradient, const T* gate_up, T* of_gate_up, std::int64_t rows,
                        std::int64_t hidden);
  /// Rotates queries and keys, and repeats keys and values for each query, from row `first` on.
  void (*spread_heads)(const T* grouped, T* spread, const Angles<T>& angles,
                       const GroupedHeads& heads, std::int64_t first, std::int64_t rows);
  /// Computes the derivative: rotates back and sums the copies.
  void (*gather_heads)(const T* spread, T* grouped, const Angles<T>& angles,
                       const GroupedHeads& heads, std::int64_t first, std::int64_t rows);
  void (*drop)(const DropWork<T>& work, std::int64_t rows, std::int64_t features);

  template <InstructionSet set>
  static const RowKernels& of();
};

}  // namespace stratagem::models::kernels
