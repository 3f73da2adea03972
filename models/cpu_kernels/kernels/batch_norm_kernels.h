// The passes over memory that batch normalisation in training takes, for pixels whose channels lie
// side by side (channels_last): x is [rows, channels], dense, one row a pixel. No torch in here:
// these files are compiled once for each instruction set, and the processor decides which is taken.
//
// Sums are taken over a few rows in T and gathered in double.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

inline constexpr std::int64_t rows_of_a_sum = 256;

/// Mean and sum of squared deviations of each channel, [channels] each.
struct Moments {
  double* mean;
  double* squares;
};

/// y = x * scale + shift (+ addend), with negative values set to 0 where `rectify`.
template <typename T>
struct Normalisation {
  const T* x;
  const T* addend;  // null: none
  const T* scale;   // [channels], as shift
  const T* shift;
  T* y;
  bool rectify;
};

/// What the ReLU behind the normalisation lets through.
enum class ReluMask {
  no,           // there is none
  recomputed,   // where x * scale + shift is above 0
  from_output,  // where the output is above 0: something was added before the ReLU
};

/// Sums over rows of the gradient, and of the gradient times (x - mean).
template <typename T>
struct GradientSums {
  const T* gradient;
  const T* x;
  const T* output;  // for ReluMask::from_output alone
  const T* mean;    // [channels], as scale and shift
  const T* scale;
  const T* shift;
  T* passed;  // for ReluMask::from_output alone: the gradient that passed, [rows, channels]
  double* sums;
  double* products;
  ReluMask rectified;
};

/// Of the input: gradient * scale + (x - mean) * of_deviation + constant.
template <typename T>
struct InputGradient {
  const T* gradient;
  const T* x;
  const T* mean;  // [channels], as those below
  const T* scale;
  const T* shift;
  const T* of_deviation;
  const T* constant;
  T* result;
  ReluMask rectified;  // not from_output: that gradient is what GradientSums let pass
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
