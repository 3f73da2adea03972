// The kernels of rows. One file for each instruction set includes this, see batch_norm_loops.h.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/row_kernels.h"
#include "models/cpu_kernels/kernels/softmax_loops.h"
#include "models/cpu_kernels/kernels/vectors.h"

namespace stratagem::models::kernels {
namespace {

template <typename T>
T sum_of_squares(const T* x, std::int64_t count) {
  constexpr std::int64_t step = 2 * vector_size<T>;
  Vector<T> even = {};
  Vector<T> odd = {};
  std::int64_t i = 0;
  for (; i + step <= count; i += step) {
    const Vector<T> first = load(x + i);
    const Vector<T> second = load(x + i + vector_size<T>);
    even += first * first;
    odd += second * second;
  }
  T sum = sum_of_lanes<T>(even + odd);
  for (; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

/// Returns the sum of a * b * c.
template <typename T>
T sum_of_products(const T* a, const T* b, const T* c, std::int64_t count) {
  Vector<T> sums = {};
  std::int64_t i = 0;
  for (; i + vector_size<T> <= count; i += vector_size<T>) {
    sums += load(a + i) * load(b + i) * load(c + i);
  }
  T sum = sum_of_lanes<T>(sums);
  for (; i < count; ++i) sum += a[i] * b[i] * c[i];
  return sum;
}

inline float square_root(float x) { return __builtin_sqrtf(x); }
inline double square_root(double x) { return __builtin_sqrt(x); }

template <typename T>
void rms_norm(const RmsNormWork<T>& work, std::int64_t rows, std::int64_t features) {
  const T* __restrict weight = work.weight;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* __restrict x = work.x + row * features;
    T* __restrict y = work.y + row * features;
    const T mean = sum_of_squares(x, features) / static_cast<T>(features);
    const T inverse = 1 / square_root(mean + work.epsilon);
    work.inverse[row] = inverse;
    for (std::int64_t i = 0; i < features; ++i) y[i] = x[i] * inverse * weight[i];
  }
}

template <typename T>
void rms_norm_gradients(const RmsNormGradients<T>& work, std::int64_t rows, std::int64_t features) {
  const T* __restrict weight = work.weight;
  T* __restrict of_weight = work.of_weight;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* __restrict gradient = work.gradient + row * features;
    const T* __restrict x = work.x + row * features;
    const T inverse = work.inverse[row];
    if (work.of_x != nullptr) {
      T* __restrict of_x = work.of_x + row * features;
      const T share = sum_of_products(gradient, x, weight, features) * inverse * inverse /
                      static_cast<T>(features);
      for (std::int64_t i = 0; i < features; ++i) {
        of_x[i] = (gradient[i] * weight[i] - x[i] * share) * inverse;
      }
    }
    if (of_weight == nullptr) continue;
    for (std::int64_t i = 0; i < features; ++i) of_weight[i] += gradient[i] * x[i] * inverse;
  }
}

/// Returns 1 / (1 + e^-x).
template <typename T>
T sigmoid(T x) {
  const T power = exponential(x < 0 ? x : -x);
  return (x < 0 ? power : T(1)) / (1 + power);
}

template <typename T>
void gate(const T* gate_up, T* gated, std::int64_t rows, std::int64_t hidden) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* __restrict gates = gate_up + 2 * row * hidden;
    const T* __restrict ups = gates + hidden;
    T* __restrict result = gated + row * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) result[i] = gates[i] * sigmoid(gates[i]) * ups[i];
  }
}

template <typename T>
void gate_gradient(const T* gradient, const T* gate_up, T* of_gate_up, std::int64_t rows,
                   std::int64_t hidden) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* __restrict of_gated = gradient + row * hidden;
    const T* __restrict gates = gate_up + 2 * row * hidden;
    const T* __restrict ups = gates + hidden;
    T* __restrict of_gates = of_gate_up + 2 * row * hidden;
    T* __restrict of_ups = of_gates + hidden;
    for (std::int64_t i = 0; i < hidden; ++i) {
      const T share = sigmoid(gates[i]);
      const T silu = gates[i] * share;
      of_gates[i] = of_gated[i] * ups[i] * (share + silu * (1 - share));
      of_ups[i] = of_gated[i] * silu;
    }
  }
}

/// Rotates one head.
template <typename T, bool back>
void rotate(const T* __restrict head, T* __restrict rotated, const T* __restrict cosine,
            const T* __restrict sine, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T first = head[i];
    const T second = head[half + i];
    const T turn = back ? -sine[i] : sine[i];
    rotated[i] = first * cosine[i] - second * turn;
    rotated[half + i] = second * cosine[i] + first * turn;
  }
}

template <typename T>
void copy(const T* from, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// RowPlace holds the beginnings of a row's values.
template <typename T>
struct RowPlace {
  const T* cosine;
  const T* sine;
  std::int64_t grouped;
  std::int64_t spread;
};

template <typename T>
RowPlace<T> row_place(const Angles<T>& angles, const GroupedHeads& heads, std::int64_t row) {
  const std::int64_t angle = row % heads.sequence * heads.features / 2;
  const std::int64_t of_groups = row * heads.groups * heads.features;
  return {angles.cosine + angle, angles.sine + angle, of_groups * (heads.queries + 2),
          of_groups * 3 * heads.queries};
}

template <typename T>
void spread_heads(const T* grouped, T* spread, const Angles<T>& angles, const GroupedHeads& heads,
                  std::int64_t first, std::int64_t rows) {
  const std::int64_t queries = heads.queries;
  const std::int64_t features = heads.features;
  const std::int64_t half = features / 2;
  const std::int64_t all = heads.groups * queries * features;
  for (std::int64_t row = first; row < first + rows; ++row) {
    const auto [cosine, sine, of_grouped, of_spread] = row_place(angles, heads, row);
    const T* from = grouped + of_grouped;
    T* to = spread + of_spread;
    for (std::int64_t group = 0; group < heads.groups; ++group) {
      const T* value = from + (queries + 1) * features;
      T* key = to + all;
      rotate<T, false>(from + queries * features, key, cosine, sine, half);
      for (std::int64_t query = 0; query < queries; ++query) {
        rotate<T, false>(from + query * features, to + query * features, cosine, sine, half);
        if (query > 0) copy(key, key + query * features, features);
        copy(value, to + 2 * all + query * features, features);
      }
      from += (queries + 2) * features;
      to += queries * features;
    }
  }
}

/// Sums `count` heads that follow one another.
template <typename T>
void sum_heads(const T* __restrict heads, T* __restrict sum, std::int64_t count,
               std::int64_t features) {
  copy(heads, sum, features);
  for (std::int64_t head = 1; head < count; ++head) {
    for (std::int64_t i = 0; i < features; ++i) sum[i] += heads[head * features + i];
  }
}

template <typename T>
void gather_heads(const T* spread, T* grouped, const Angles<T>& angles, const GroupedHeads& heads,
                  std::int64_t first, std::int64_t rows) {
  const std::int64_t queries = heads.queries;
  const std::int64_t features = heads.features;
  const std::int64_t half = features / 2;
  const std::int64_t all = heads.groups * queries * features;
  for (std::int64_t row = first; row < first + rows; ++row) {
    const auto [cosine, sine, of_grouped, of_spread] = row_place(angles, heads, row);
    const T* from = spread + of_spread;
    T* to = grouped + of_grouped;
    for (std::int64_t group = 0; group < heads.groups; ++group) {
      for (std::int64_t query = 0; query < queries; ++query) {
        rotate<T, true>(from + query * features, to + query * features, cosine, sine, half);
      }
      T* key = to + queries * features;
      T* value = key + features;  // holds the keys' sum first
      sum_heads(from + all, value, queries, features);
      rotate<T, true>(value, key, cosine, sine, half);
      sum_heads(from + 2 * all, value, queries, features);
      from += queries * features;
      to += (queries + 2) * features;
    }
  }
}

/// Repeats datasets::scrambled(), which the linker could take from another instruction set.
inline std::uint64_t scrambled(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

template <typename T>
void drop(const DropWork<T>& work, std::int64_t rows, std::int64_t features) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15U;
  const std::uint64_t threshold = work.threshold << 32U;
  const T scale = work.scale;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* __restrict x = work.x + row * features;
    T* __restrict y = work.y + row * features;
    std::uint64_t state = static_cast<std::uint64_t>(work.keys[row]);
    for (std::int64_t i = 0; i < features; ++i) {
      state += step;
      y[i] = scrambled(state) >= threshold ? x[i] * scale : T(0);
    }
  }
}

}  // namespace

template <typename T>
template <InstructionSet set>
const RowKernels<T>& RowKernels<T>::of() {
  static constexpr RowKernels table = {kernels::rms_norm<T>,     kernels::rms_norm_gradients<T>,
                                       kernels::gate<T>,         kernels::gate_gradient<T>,
                                       kernels::spread_heads<T>, kernels::gather_heads<T>,
                                       kernels::drop<T>};
  return table;
}
template const RowKernels<float>& RowKernels<float>::of<own_set>();
template const RowKernels<double>& RowKernels<double>::of<own_set>();

}  // namespace stratagem::models::kernels
