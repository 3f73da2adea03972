// Tiles of F(2x2, 3x3) and the products of their transforms. One file for each instruction set
// includes this.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/product_loops.h"
#include "models/cpu_kernels/kernels/winograd_kernels.h"
#include "models/cpu_kernels/kernels/winograd_transforms.h"

namespace stratagem::models::kernels {
namespace {

static_assert(winograd_channels<float> % panel<float> == 0);
static_assert(winograd_channels<double> % panel<double> == 0);
static_assert(winograd_block_of_few % rows_of_a_tile == 0 &&
              winograd_block_of_many % rows_of_a_tile == 0);
static_assert(rows_of_a_tile <= winograd_rows);

/// The sample and the row and column of a tile's first output.
struct TilePlace {
  std::int64_t sample;
  std::int64_t row;
  std::int64_t column;
};

inline TilePlace place_of_tile(const WinogradShape& shape, std::int64_t tile) {
  const std::int64_t across = (shape.width + 1) / 2;
  const std::int64_t of_sample = across * ((shape.height + 1) / 2);
  const std::int64_t within = tile % of_sample;
  return {tile / of_sample, within / across * 2, within % across * 2};
}

/// Returns the pixels of a tile that begins `offset` before its first output each way. `zeros`, of
/// all channels, replaces pixels outside the image.
template <int Side, typename T>
SquareOf<const T, Side> tile_pixels(const T* images, std::int64_t channels,
                                    const WinogradShape& shape, const TilePlace& place,
                                    std::int64_t offset, const T* zeros) {
  SquareOf<const T, Side> pixels{};
  for (int i = 0; i < Side; ++i) {
    const std::int64_t row = place.row - offset + i;
    const std::int64_t first = (place.sample * shape.height + row) * shape.width;
    for (int j = 0; j < Side; ++j) {
      const std::int64_t column = place.column - offset + j;
      const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
      pixels.at[i][j] = inside ? images + (first + column) * channels : zeros;
    }
  }
  return pixels;
}

/// Stores vectors of channels `vector_step` apart and places `place_step` apart.
template <typename Transform, typename T>
void transform_tile(const SquareOf<const T, Transform::in>& pixels, std::int64_t channels, T* to,
                    std::int64_t vector_step, std::int64_t place_step) {
  for (std::int64_t channel = 0; channel < channels; channel += vector_size<T>) {
    const auto square = load_square<T, Transform::in>(pixels, channel);
    store_places(transform_square<Transform, T>(square), to, place_step);
    to += vector_step;
  }
}

/// Computes two vectors of sums for each of several rows. `left` steps by one value `inner` times,
/// then by `left_step`; `right` steps by right_step each time.
template <typename T>
struct WinogradProduct {
  const T* left;
  std::int64_t left_step;
  const T* right;
  std::int64_t right_step;
  T* sum;
  std::int64_t sum_step;
  std::int64_t count;  // the number of left's steps
};

template <std::int64_t RowStep, std::int64_t Inner, int Rows, typename T>
void winograd_product(const WinogradProduct<T>& work) {
  Vector<T> low[Rows];   // NOLINT(modernize-avoid-c-arrays): nothing of the standard library here
  Vector<T> high[Rows];  // NOLINT(modernize-avoid-c-arrays)
  for (int i = 0; i < Rows; ++i) {
    low[i] = Vector<T>{};
    high[i] = Vector<T>{};
  }
  const T* left = work.left;
  const T* right = work.right;
  for (std::int64_t step = 0; step < work.count; ++step, left += work.left_step) {
    for (std::int64_t inner = 0; inner < Inner; ++inner, right += work.right_step) {
      const Vector<T> first = load(right);
      const Vector<T> second = load(right + vector_size<T>);
#pragma GCC unroll 12
      for (int i = 0; i < Rows; ++i) {
        const T factor = left[inner + i * RowStep];
        low[i] += first * factor;
        high[i] += second * factor;
      }
    }
  }
  for (int i = 0; i < Rows; ++i) {
    T* const row = work.sum + i * work.sum_step;
    store(low[i], row);
    store(high[i], row + vector_size<T>);
  }
}

template <std::int64_t RowStep, std::int64_t Inner, int Rows = rows_of_a_tile, typename T>
void winograd_product_of(std::int64_t rows, const WinogradProduct<T>& work) {
  if (rows >= Rows) return winograd_product<RowStep, Inner, Rows>(work);
  if constexpr (Rows > 1) winograd_product_of<RowStep, Inner, Rows - 1>(rows, work);
}

}  // namespace
}  // namespace stratagem::models::kernels
