// Convolutions by F(2x2, 3x3). A block of tiles is transformed at a time, so that the products find
// it in a cache. It lies in their reading order: at each place, groups of rows_of_a_tile tiles,
// each [channels / vector, tile, vector]. One file for each instruction set includes this.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/cpu_kernels/kernels/winograd_gradient_loops.h"
#include "models/cpu_kernels/kernels/winograd_tiles.h"

namespace stratagem::models::kernels {
namespace {

/// Consecutive panels of channels at each place, each [the other channels, panel].
template <typename T>
struct PlaceOfPanel {
  T* first;
  std::int64_t place_step;
};

/// Transforms a vector of the channels in; backwards it rotates the weights by 180 degrees.
template <typename T>
Square<T, 4> transform_filter(const WinogradWeights<T>& work, std::int64_t out, std::int64_t in) {
  SquareOf<const T, 3> weights{};
  const T* const first = work.weight + out * 9 * work.in;
  for (int place = 0; place < 9; ++place) {
    const int from = work.backwards ? 8 - place : place;
    weights.at[place / 3][place % 3] = first + from * work.in;
  }
  return transform_square<WeightTransform, T>(load_square<T, 3>(weights, in));
}

/// Transforms a panel of outputs for a vector of the channels in and transposes the two.
template <typename T>
void panel_of_weights(const WinogradWeights<T>& work, std::int64_t out, std::int64_t in,
                      const PlaceOfPanel<T>& to) {
  constexpr std::int64_t size = vector_size<T>;
  alignas(64) T square[winograd_places][panel<T>][size];  // NOLINT(modernize-avoid-c-arrays)
  for (std::int64_t i = 0; i < panel<T>; ++i) {
    store_places(transform_filter(work, out + i, in), &square[0][i][0], panel<T> * size);
  }
  for (std::int64_t place = 0; place < winograd_places; ++place) {
    T* const rows = to.first + place * to.place_step + in * panel<T>;
    for (std::int64_t row = 0; row < size; ++row) {
      for (std::int64_t i = 0; i < panel<T>; ++i) {
        rows[row * panel<T> + i] = square[place][i][row];
      }
    }
  }
}

template <typename T>
void transform_weights(const WinogradWeights<T>& work, std::int64_t first, std::int64_t count) {
  const std::int64_t other = work.backwards ? work.out : work.in;
  for (std::int64_t column = first; column < first + count; column += panel<T>) {
    const PlaceOfPanel<T> to = {work.transformed + column * other, work.in * work.out};
    if (work.backwards) {
      for (std::int64_t out = 0; out < work.out; ++out) {
        for (std::int64_t half = 0; half < panel<T>; half += vector_size<T>) {
          store_places(transform_filter(work, out, column + half), to.first + out * panel<T> + half,
                       to.place_step);
        }
      }
    } else {
      for (std::int64_t in = 0; in < work.in; in += vector_size<T>) {
        panel_of_weights(work, column, in, to);
      }
    }
  }
}

/// Multiplies a block of transformed inputs; writes [places, tiles, out].
template <typename T>
void products_of_block(const WinogradConvolution<T>& work, const T* inputs, std::int64_t tiles,
                       T* outputs) {
  const std::int64_t in = work.shape.in;
  const std::int64_t out = work.shape.out;
  const std::int64_t groups = (tiles + rows_of_a_tile - 1) / rows_of_a_tile;
  const std::int64_t group_size = rows_of_a_tile * in;
  for (std::int64_t place = 0; place < winograd_places; ++place) {
    for (std::int64_t column = 0; column < out; column += panel<T>) {
      const T* const right = work.transformed + (place * out + column) * in;
      for (std::int64_t group = 0; group < groups; ++group) {
        const std::int64_t first = group * rows_of_a_tile;
        winograd_product_of<vector_size<T>, vector_size<T>>(
            tiles - first, WinogradProduct<T>{inputs + (place * groups + group) * group_size,
                                              rows_of_a_tile * vector_size<T>, right, panel<T>,
                                              outputs + (place * tiles + first) * out + column, out,
                                              in / vector_size<T>});
      }
    }
  }
}

/// Transforms a tile back to y; its first place is at `outputs`.
template <typename T>
void outputs_of_tile(const WinogradConvolution<T>& work, const T* outputs, std::int64_t place_step,
                     const TilePlace& place) {
  const WinogradShape& shape = work.shape;
  T* const y =
      work.y + ((place.sample * shape.height + place.row) * shape.width + place.column) * shape.out;
  const bool right = place.column + 1 < shape.width;
  const bool below = place.row + 1 < shape.height;
  for (std::int64_t channel = 0; channel < shape.out; channel += vector_size<T>) {
    const auto tile =
        transform_square<OutputTransform, T>(load_places<T, 4>(outputs + channel, place_step));
    T* const first = y + channel;
    T* const second = first + shape.width * shape.out;
    store(tile.at[0][0], first);
    if (right) store(tile.at[0][1], first + shape.out);
    if (below) store(tile.at[1][0], second);
    if (right && below) store(tile.at[1][1], second + shape.out);
  }
}

template <typename T>
void winograd_convolve(const WinogradConvolution<T>& work, std::int64_t first, std::int64_t count) {
  const WinogradShape& shape = work.shape;
  const std::int64_t block = winograd_block(shape);
  T* const zeros = work.scratch;
  T* const inputs = zeros + shape.in;
  T* const outputs = inputs + winograd_places * block * shape.in;
  for (std::int64_t i = 0; i < shape.in; ++i) zeros[i] = 0;
  for (std::int64_t begin = first; begin < first + count; begin += block) {
    const std::int64_t tiles = std::min(block, first + count - begin);
    const std::int64_t groups = (tiles + rows_of_a_tile - 1) / rows_of_a_tile;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const auto window =
          tile_pixels<4>(work.x, shape.in, shape, place_of_tile(shape, begin + tile), 1, zeros);
      T* const to = inputs + tile / rows_of_a_tile * rows_of_a_tile * shape.in +
                    tile % rows_of_a_tile * vector_size<T>;
      transform_tile<InputTransform>(window, shape.in, to, rows_of_a_tile * vector_size<T>,
                                     groups * rows_of_a_tile * shape.in);
    }
    products_of_block(work, inputs, tiles, outputs);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      outputs_of_tile(work, outputs + tile * shape.out, tiles * shape.out,
                      place_of_tile(shape, begin + tile));
    }
  }
}

}  // namespace

template <typename T>
template <InstructionSet set>
const WinogradKernels<T>& WinogradKernels<T>::of() {
  static constexpr WinogradKernels table = {transform_weights<T>, winograd_convolve<T>,
                                            winograd_gradient<T>};
  return table;
}
template const WinogradKernels<float>& WinogradKernels<float>::of<own_set>();
template const WinogradKernels<double>& WinogradKernels<double>::of<own_set>();

}  // namespace stratagem::models::kernels
