// The gradient of a convolution's weights by F(2x2, 3x3), whose transforms are the adjoints of the
// convolution's. A transformed block lies as [places, tiles, channels]. Included by one file for
// each instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/cpu_kernels/kernels/winograd_tiles.h"

namespace stratagem::models::kernels {
namespace {

/// Of `count` channels out, a block's share of the sums, [places, out, in].
template <typename T>
struct GradientBlock {
  const T* inputs;     // [places, tiles, in]
  const T* gradients;  // [places, tiles, count]
  T* sums;             // [places, count, in]
  std::int64_t tiles;
  std::int64_t in;
  std::int64_t count;
  bool added;
};

template <typename T>
void products_of_gradients(const GradientBlock<T>& work) {
  for (std::int64_t place = 0; place < winograd_places; ++place) {
    for (std::int64_t column = 0; column < work.in; column += panel<T>) {
      const T* const right = work.inputs + place * work.tiles * work.in + column;
      for (std::int64_t out = 0; out < work.count; out += rows_of_a_tile) {
        winograd_product_of<1, 1>(
            work.count - out,
            WinogradProduct<T>{work.gradients + place * work.tiles * work.count + out, work.count,
                               right, work.in,
                               work.sums + (place * work.count + out) * work.in + column, work.in,
                               work.tiles, work.added});
      }
    }
  }
}

/// To the weights' own places.
template <typename T>
void store_gradient(const WinogradGradient<T>& work, std::int64_t first, std::int64_t count,
                    const T* sums) {
  const std::int64_t in = work.shape.in;
  for (std::int64_t out = 0; out < count; ++out) {
    T* const weights = work.sum + (first + out) * 9 * in;
    for (std::int64_t channel = 0; channel < in; channel += vector_size<T>) {
      auto gradient = transformed<WeightGradientTransform, T>(
          load_places<T, 4>(sums + out * in + channel, count * in));
      if (work.added) {
        const auto before = load_places<T, 3>(weights + channel, in);
        for (int place = 0; place < 9; ++place) {
          gradient.at[place / 3][place % 3] += before.at[place / 3][place % 3];
        }
      }
      store_places(gradient, weights + channel, in);
    }
  }
}

template <typename T>
void winograd_gradient(const WinogradGradient<T>& work, std::int64_t first, std::int64_t count) {
  const WinogradShape& shape = work.shape;
  const std::int64_t most = std::max(shape.in, shape.out);
  T* const zeros = work.scratch;
  T* const inputs = zeros + most;
  T* const gradients = inputs + winograd_places * winograd_block_of_gradient * shape.in;
  T* const sums = gradients + winograd_places * winograd_block_of_gradient * count;
  for (std::int64_t i = 0; i < most; ++i) zeros[i] = 0;
  const std::int64_t all = winograd_tiles(shape);
  for (std::int64_t begin = 0; begin < all; begin += winograd_block_of_gradient) {
    const std::int64_t tiles = std::min(winograd_block_of_gradient, all - begin);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const TilePlace place = place_of_tile(shape, begin + tile);
      transform_tile<InputTransform>(pixels<4>(work.x, shape.in, shape, place, 1, zeros), shape.in,
                                     inputs + tile * shape.in, vector_size<T>, tiles * shape.in);
      transform_tile<OutputGradientTransform>(
          pixels<2>(work.gradient + first, shape.out, shape, place, 0, zeros), count,
          gradients + tile * count, vector_size<T>, tiles * count);
    }
    products_of_gradients(
        GradientBlock<T>{inputs, gradients, sums, tiles, shape.in, count, begin > 0});
  }
  store_gradient(work, first, count, sums);
}

}  // namespace
}  // namespace stratagem::models::kernels
