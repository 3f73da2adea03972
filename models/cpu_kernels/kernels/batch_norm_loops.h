// The batch normalisation kernels. One file for each instruction set includes this. Everything has
// internal linkage, so that the linker cannot give one file's code to another, and plain loops over
// the channels, which compilers vectorise.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/batch_norm_kernels.h"

namespace stratagem::models::kernels {
namespace {

template <typename T>
void clear(T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = 0;
}

/// Sums x - pivot and its square. The pivot is near the mean, so that little is cancelled.
template <typename T>
void sum_deviations(const T* __restrict x, std::int64_t rows, std::int64_t channels,
                    const T* __restrict pivot, T* __restrict sums, T* __restrict squares) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const T deviation = x[c] - pivot[c];
      sums[c] += deviation;
      squares[c] += deviation * deviation;
    }
  }
}

/// Adds the sums of more rows (Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise
/// algorithm for computing sample variances", equation 1.5).
template <typename T>
void take_in(const Moments& all, std::int64_t rows_before, const T* __restrict pivot,
             const T* __restrict sums, const T* __restrict squares, std::int64_t rows,
             std::int64_t channels) {
  double* __restrict mean = all.mean;
  double* __restrict total = all.squares;
  const double each = 1.0 / static_cast<double>(rows);
  const double share = static_cast<double>(rows) / static_cast<double>(rows_before + rows);
  const double weight = static_cast<double>(rows_before) * share;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double offset = static_cast<double>(sums[c]) * each;
    const double delta = static_cast<double>(pivot[c]) + offset - mean[c];
    mean[c] += delta * share;
    total[c] += static_cast<double>(squares[c]) - static_cast<double>(sums[c]) * offset +
                delta * delta * weight;
  }
}

/// The first rows' pivot is one of them; later rows' pivot is the mean so far.
template <typename T>
void moments(const T* x, std::int64_t rows, std::int64_t channels, T* scratch,
             const Moments& result) {
  T* const pivot = scratch + 2 * channels;
  for (std::int64_t c = 0; c < channels; ++c) pivot[c] = x[c];
  clear(result.mean, channels);
  clear(result.squares, channels);
  for (std::int64_t first = 0; first < rows; first += rows_of_a_sum) {
    const std::int64_t count = rows - first < rows_of_a_sum ? rows - first : rows_of_a_sum;
    clear(scratch, 2 * channels);
    sum_deviations(x + first * channels, count, channels, pivot, scratch, scratch + channels);
    take_in(result, first, pivot, scratch, scratch + channels, count, channels);
    for (std::int64_t c = 0; c < channels; ++c) pivot[c] = static_cast<T>(result.mean[c]);
  }
}

template <typename T, bool Adds, bool Rectifies>
void normalise_rows(const T* __restrict x, const T* __restrict addend, const T* __restrict scale,
                    const T* __restrict shift, T* __restrict y, std::int64_t rows,
                    std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      T z = x[c] * scale[c] + shift[c];
      if constexpr (Adds) z += addend[c];
      if constexpr (Rectifies) z = z < 0 ? 0 : z;  // like ATen's ReLU: a NaN stays
      y[c] = z;
    }
    if constexpr (Adds) addend += channels;
  }
}

template <typename T>
void normalise(const Normalisation<T>& work, std::int64_t rows, std::int64_t channels) {
  const auto run = [&](auto pass) {
    pass(work.x, work.addend, work.scale, work.shift, work.y, rows, channels);
  };
  if (work.addend != nullptr) {
    run(work.rectify ? normalise_rows<T, true, true> : normalise_rows<T, true, false>);
  } else {
    run(work.rectify ? normalise_rows<T, false, true> : normalise_rows<T, false, false>);
  }
}

template <typename T, ReluMask How>
void sum_gradients(const GradientSums<T>& work, std::int64_t first, std::int64_t rows,
                   std::int64_t channels, T* __restrict sums, T* __restrict products) {
  const T* __restrict gradient = work.gradient + first * channels;
  const T* __restrict x = work.x + first * channels;
  const T* __restrict mean = work.mean;
  const T* __restrict scale = work.scale;
  const T* __restrict shift = work.shift;
  const bool writes = How == ReluMask::from_output;
  const T* __restrict output = writes ? work.output + first * channels : nullptr;
  T* __restrict passed = writes ? work.passed + first * channels : nullptr;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, gradient += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      T g = gradient[c];
      if constexpr (How == ReluMask::recomputed) g = x[c] * scale[c] + shift[c] <= 0 ? 0 : g;
      if constexpr (How == ReluMask::from_output) {
        g = output[c] <= 0 ? 0 : g;
        passed[c] = g;
      }
      sums[c] += g;
      products[c] += g * (x[c] - mean[c]);
    }
    if constexpr (How == ReluMask::from_output) {
      output += channels;
      passed += channels;
    }
  }
}

template <typename T, ReluMask How>
void gradient_sums_of(const GradientSums<T>& work, std::int64_t rows, std::int64_t channels,
                      T* scratch) {
  clear(work.sums, channels);
  clear(work.products, channels);
  for (std::int64_t first = 0; first < rows; first += rows_of_a_sum) {
    const std::int64_t count = rows - first < rows_of_a_sum ? rows - first : rows_of_a_sum;
    clear(scratch, 2 * channels);
    sum_gradients<T, How>(work, first, count, channels, scratch, scratch + channels);
    for (std::int64_t c = 0; c < channels; ++c) {
      work.sums[c] += static_cast<double>(scratch[c]);
      work.products[c] += static_cast<double>(scratch[channels + c]);
    }
  }
}

template <typename T>
void gradient_sums(const GradientSums<T>& work, std::int64_t rows, std::int64_t channels,
                   T* scratch) {
  switch (work.rectified) {
    case ReluMask::no:
      return gradient_sums_of<T, ReluMask::no>(work, rows, channels, scratch);
    case ReluMask::recomputed:
      return gradient_sums_of<T, ReluMask::recomputed>(work, rows, channels, scratch);
    case ReluMask::from_output:
      return gradient_sums_of<T, ReluMask::from_output>(work, rows, channels, scratch);
  }
}

template <typename T, bool Rectifies>
void input_gradient_of(const InputGradient<T>& work, std::int64_t rows, std::int64_t channels) {
  const T* __restrict gradient = work.gradient;
  const T* __restrict x = work.x;
  const T* __restrict mean = work.mean;
  const T* __restrict scale = work.scale;
  const T* __restrict shift = work.shift;
  const T* __restrict of_deviation = work.of_deviation;
  const T* __restrict constant = work.constant;
  T* __restrict result = work.result;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels; ++c) {
      T g = gradient[c];
      if constexpr (Rectifies) g = x[c] * scale[c] + shift[c] <= 0 ? 0 : g;
      result[c] = g * scale[c] + (x[c] - mean[c]) * of_deviation[c] + constant[c];
    }
    gradient += channels;
    x += channels;
    result += channels;
  }
}

template <typename T>
void input_gradient(const InputGradient<T>& work, std::int64_t rows, std::int64_t channels) {
  if (work.rectified == ReluMask::recomputed) {
    input_gradient_of<T, true>(work, rows, channels);
  } else {
    input_gradient_of<T, false>(work, rows, channels);
  }
}

}  // namespace

template <typename T>
template <InstructionSet set>
const BatchNormKernels<T>& BatchNormKernels<T>::of() {
  static constexpr BatchNormKernels table = {kernels::moments<T>, kernels::normalise<T>,
                                             kernels::gradient_sums<T>, kernels::input_gradient<T>};
  return table;
}
template const BatchNormKernels<float>& BatchNormKernels<float>::of<own_set>();
template const BatchNormKernels<double>& BatchNormKernels<double>::of<own_set>();

}  // namespace stratagem::models::kernels
