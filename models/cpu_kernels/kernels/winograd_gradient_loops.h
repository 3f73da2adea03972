// The gradient of a convolution's weights by F(2x2, 3x3), whose transforms are the adjoints of the
// convolution's. A transformed block is [places, tiles, channels]. One file for each instruction
// set includes this.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/cpu_kernels/kernels/winograd_tiles.h"

namespace stratagem::models::kernels {
namespace {

/// The transforms of a block of tiles, for `count` channels out.
template <typename T>
struct GradientBlock {
  const T* inputs;     // [places, tiles, in]
  const T* gradients;  // [places, tiles, count]
  std::int64_t tiles;
  std::int64_t in;
  std::int64_t count;
};

/// The first and the number of a few channels out and in.
struct GradientTile {
  std::int64_t out;
  std::int64_t rows;
  std::int64_t in;
  std::int64_t columns;
};

/// Writes the products to [places, rows_of_a_tile, winograd_columns].
template <typename T>
void products_of_gradients(const GradientBlock<T>& block, const GradientTile& tile, T* sums) {
  for (std::int64_t place = 0; place < winograd_places; ++place) {
    const T* const left = block.gradients + place * block.tiles * block.count + tile.out;
    const T* const right = block.inputs + place * block.tiles * block.in + tile.in;
    T* const sum = sums + place * rows_of_a_tile * winograd_columns<T>;
    for (std::int64_t column = 0; column < tile.columns; column += panel<T>) {
      winograd_product_of<1, 1>(
          tile.rows, WinogradProduct<T>{left, block.count, right + column, block.in, sum + column,
                                        winograd_columns<T>, block.tiles});
    }
  }
}

/// Transforms the sums back and stores them in the weights' layout.
template <typename T>
void store_gradients(const T* sums, const GradientTile& tile, T* weights, std::int64_t in,
                     bool added) {
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t column = 0; column < tile.columns; column += vector_size<T>) {
      auto gradient = transform_square<WeightGradientTransform, T>(load_places<T, 4>(
          sums + row * winograd_columns<T> + column, rows_of_a_tile * winograd_columns<T>));
      T* const to = weights + (tile.out + row) * 9 * in + tile.in + column;
      if (added) add_to(gradient, load_places<T, 3>(to, in));
      store_places(gradient, to, in);
    }
  }
}

/// Computes the gradients of a block's tiles and stores them in the weights' layout.
template <typename T>
void gradients_of_block(const WinogradGradient<T>& work, const GradientBlock<T>& block, T* sums,
                        std::int64_t first, bool added) {
  for (std::int64_t in = 0; in < block.in; in += winograd_columns<T>) {
    const std::int64_t columns = std::min(winograd_columns<T>, block.in - in);
    for (std::int64_t out = 0; out < block.count; out += rows_of_a_tile) {
      const auto rows = std::min<std::int64_t>(rows_of_a_tile, block.count - out);
      const GradientTile tile = {out, rows, in, columns};
      products_of_gradients(block, tile, sums);
      store_gradients(sums, tile, work.sum + first * 9 * block.in, block.in, added);
    }
  }
}

template <typename T>
void winograd_gradient(const WinogradGradient<T>& work, std::int64_t first, std::int64_t count) {
  const WinogradShape& shape = work.shape;
  const std::int64_t pixel = std::max(shape.in, shape.out);
  const std::int64_t most = winograd_block_of_gradient(shape);
  T* const zeros = work.scratch;
  T* const inputs = zeros + pixel;
  T* const gradients = inputs + winograd_places * most * shape.in;
  T* const sums = gradients + winograd_places * most * count;
  for (std::int64_t i = 0; i < pixel; ++i) zeros[i] = 0;
  const std::int64_t all = winograd_tiles(shape);
  for (std::int64_t begin = 0; begin < all; begin += most) {
    const std::int64_t tiles = std::min(most, all - begin);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const TilePlace place = place_of_tile(shape, begin + tile);
      transform_tile<InputTransform>(tile_pixels<4>(work.x, shape.in, shape, place, 1, zeros),
                                     shape.in, inputs + tile * shape.in, vector_size<T>,
                                     tiles * shape.in);
      transform_tile<OutputGradientTransform>(
          tile_pixels<2>(work.gradient + first, shape.out, shape, place, 0, zeros), count,
          gradients + tile * count, vector_size<T>, tiles * count);
    }
    gradients_of_block(work, {inputs, gradients, tiles, shape.in, count}, sums, first,
                       work.added || begin > 0);
  }
}

}  // namespace
}  // namespace stratagem::models::kernels
