// Softmax of a row and its derivative. One file for each instruction set includes this, see
// batch_norm_loops.h.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/vectors.h"

namespace stratagem::models::kernels {
namespace {

/// Returns e^x for x <= 0, within two units in the last place, and 0 below -87, near which powers
/// cease to be normal numbers. Cody and Waite's method (Muller, "Elementary Functions", chapter 11)
/// reduces the range; the polynomial is Taylor's, whose remainder at ln(2)/2 is 6e-9.
inline float exponential(float x) {
  constexpr float kLeast = -87.0F;
  constexpr float kOfTwo = 1.44269504F;
  constexpr float kHigh = 0.693359375F;  // ln 2 in two parts: the first with few bits
  constexpr float kLow = -2.12194440e-4F;
  constexpr float kRounds = 12582912.0F;  // 1.5 * 2^23: adding it rounds a number
  const float bounded = x < kLeast ? kLeast : x;
  const float power = (bounded * kOfTwo + kRounds) - kRounds;
  const float rest = (bounded - power * kHigh) - power * kLow;
  float sum = 1.0F / 5040;
  sum = sum * rest + 1.0F / 720;
  sum = sum * rest + 1.0F / 120;
  sum = sum * rest + 1.0F / 24;
  sum = sum * rest + 1.0F / 6;
  sum = sum * rest + 0.5F;
  sum = sum * rest + 1.0F;
  sum = sum * rest + 1.0F;
  const auto exponent = static_cast<std::int32_t>(power) + 127;
  const float scaled = sum * __builtin_bit_cast(float, exponent << 23);
  return x < kLeast ? 0.0F : scaled;
}

inline double exponential(double x) { return __builtin_exp(x); }

/// Returns the largest of whole vectors.
template <typename T>
T largest(const T* values, std::int64_t count) {
  Vector<T> tops = load(values);
  for (std::int64_t i = vector_size<T>; i < count; i += vector_size<T>) {
    const Vector<T> others = load(values + i);
    tops = others > tops ? others : tops;
  }
  T result = tops[0];
  for (int lane = 1; lane < vector_size<T>; ++lane) {
    result = tops[lane] > result ? tops[lane] : result;
  }
  return result;
}

template <typename T>
T sum_of_lanes(const Vector<T>& lanes) {
  T sum = 0;
  for (int lane = 0; lane < vector_size<T>; ++lane) sum += lanes[lane];
  return sum;
}

/// Computes the softmax of the first `count` values; sets the rest of the whole vectors to 0.
template <typename T>
void softmax(T* __restrict values, std::int64_t count, std::int64_t row) {
  for (std::int64_t i = count; i < row; ++i) values[i] = static_cast<T>(-__builtin_inf());
  const T top = largest(values, row);
  for (std::int64_t i = 0; i < row; ++i) values[i] = exponential(values[i] - top);
  Vector<T> sums = {};
  for (std::int64_t i = 0; i < row; i += vector_size<T>) sums += load(values + i);
  const T factor = 1 / sum_of_lanes<T>(sums);
  for (std::int64_t i = 0; i < row; ++i) values[i] *= factor;
}

/// Turns the gradient of the probabilities into that of the values, in rows of whole vectors.
template <typename T>
void softmax_gradient(const T* __restrict probabilities, std::int64_t row, T* __restrict gradient) {
  Vector<T> sums = {};
  for (std::int64_t i = 0; i < row; i += vector_size<T>) {
    sums += load(probabilities + i) * load(gradient + i);
  }
  const T sum = sum_of_lanes<T>(sums);
  for (std::int64_t i = 0; i < row; ++i) gradient[i] = probabilities[i] * (gradient[i] - sum);
}

}  // namespace
}  // namespace stratagem::models::kernels
