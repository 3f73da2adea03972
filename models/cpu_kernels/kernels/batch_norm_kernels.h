// The passes over memory of batch normalisation in training, for pixels whose channels are
// contiguous (channels_last): x is [rows, channels], dense, one row a pixel. They use no torch:
// these files are compiled once for each instruction set, and the processor decides which one runs.
//
// Sums over a few rows are taken in T and gathered in double.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

inline constexpr std::int64_t rows_of_a_sum = 256;

/// The mean and the sum of squared deviations of each channel, [channels] each.
struct Moments {
  double* mean;
  double* squares;
};

/// Computes y = x * scale + shift (+ addend); `rectify` sets negative values to 0.
template <typename T>
struct Normalisation {
  const T* x;
  const T* addend;  // null: nothing is added
  const T* scale;   // [channels], like shift
  const T* shift;
  T* y;
  bool rectify;
};

/// The values that the ReLU behind the normalisation passes.
enum class ReluMask {
  no,           // there is no ReLU
  recomputed,   // where x * scale + shift is above 0
  from_output,  // where the output is above 0: a sum came before the ReLU
};

/// Sums the gradient, and the gradient times (x - mean), over rows.
template <typename T>
struct GradientSums {
  const T* gradient;
  const T* x;
  const T* output;  // only for ReluMask::from_output
  const T* mean;    // [channels], like scale and shift
  const T* scale;
  const T* shift;
  T* passed;  // only for ReluMask::from_output: the gradient that passed, [rows, channels]
  double* sums;
  double* products;
  ReluMask rectified;
};

/// The input's gradient: gradient * scale + (x - mean) * of_deviation + constant.
template <typename T>
struct InputGradient {
  const T* gradient;
  const T* x;
  const T* mean;  // [channels], like the fields below
  const T* scale;
  const T* shift;
  const T* of_deviation;
  const T* constant;
  T* result;
  ReluMask rectified;  // not from_output: GradientSums has already masked that gradient
};

/// `scratch` holds 3 * channels values.
template <typename T>
struct BatchNormKernels {
  void (*moments)(const T* x, std::int64_t rows, std::int64_t channels, T* scratch,
                  const Moments& result);
  void (*normalise)(const Normalisation<T>& work, std::int64_t rows, std::int64_t channels);
  void (*gradient_sums)(const GradientSums<T>& work, std::int64_t rows, std::int64_t channels,
                        T* scratch);
  void (*input_gradient)(const InputGradient<T>& work, std::int64_t rows, std::int64_t channels);

  template <InstructionSet set>
  static const BatchNormKernels& of();
};

}  // namespace stratagem::models::kernels
