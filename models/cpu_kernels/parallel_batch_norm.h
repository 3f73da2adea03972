// The passes of kernels/batch_norm_kernels.h with their rows shared by a device's threads. Sums are
// added in the order of the parts, so that they are reproducible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cpu_kernels/kernels/batch_norm_kernels.h"

namespace stratagem::models {

/// The rows of a tensor [n, c, h, w] whose channels are contiguous.
struct ChannelRows {
  std::int64_t count;
  std::int64_t channels;
};

/// Two sums of each channel over some or all rows.
struct ChannelSums {
  explicit ChannelSums(std::int64_t channels)
      : first(static_cast<std::size_t>(channels)), second(first.size()) {}

  std::int64_t rows = 0;
  std::vector<double> first;
  std::vector<double> second;
};

/// Computes the mean of each channel and the sum of its squared deviations.
template <typename T>
ChannelSums parallel_moments(const T* x, const ChannelRows& rows);

template <typename T>
void parallel_normalise(const kernels::Normalisation<T>& work, const ChannelRows& rows);

/// Sets the work's `sums` and `products` itself.
template <typename T>
ChannelSums parallel_gradient_sums(const kernels::GradientSums<T>& work, const ChannelRows& rows);

template <typename T>
void parallel_input_gradient(const kernels::InputGradient<T>& work, const ChannelRows& rows);

}  // namespace stratagem::models
