// The passes of kernels/batch_norm_kernels.h, their rows shared by a device's threads. Sums are
// added up in the order of the parts, so that they are the same each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cpu_kernels/kernels/batch_norm_kernels.h"

namespace stratagem::models {

/// Of a tensor [n, c, h, w] whose channels lie side by side.
struct ChannelRows {
  std::int64_t count;
  std::int64_t channels;
};

/// Two sums of each channel, over a part of the rows or over all.
struct ChannelSums {
  explicit ChannelSums(std::int64_t channels)
      : first(static_cast<std::size_t>(channels)), second(first.size()) {}

  std::int64_t rows = 0;
  std::vector<double> first;
  std::vector<double> second;
};

/// The mean of each channel, and the sum of its squared deviations.
template <typename T>
ChannelSums parallel_moments(const T* x, const ChannelRows& rows);

template <typename T>
void parallel_normalise(const kernels::Normalisation<T>& work, const ChannelRows& rows);

/// `sums` and `products` of the work are set here.
template <typename T>
ChannelSums parallel_gradient_sums(const kernels::GradientSums<T>& work, const ChannelRows& rows);

template <typename T>
void parallel_input_gradient(const kernels::InputGradient<T>& work, const ChannelRows& rows);

}  // namespace stratagem::models
