// 3x3 convolutions of stride 1 and padding 1 with fewer multiplications (Winograd 1980, "Arithmetic
// Complexity of Computations"; Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural
// Networks", section 4.1, F(2x2, 3x3)): four outputs a channel out of 4x4 inputs by 16 products
// where the definition takes 36. Images and filters are transformed, and of each of the 16 places
// the channels' sums are one product of matrices. No torch in here: see winograd_loops.h.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

/// Pixels lie as [samples, height, width, channels], weights as [out, 3, 3, in].
struct WinogradShape {
  std::int64_t samples;
  std::int64_t height;
  std::int64_t width;
  std::int64_t in;  // channels of both a multiple of winograd_channels
  std::int64_t out;
};

/// Whole panels of the widest vectors.
template <typename T>
inline constexpr std::int64_t winograd_channels = 128 / sizeof(T);

/// Elements of a transformed tile, 4x4.
inline constexpr std::int64_t winograd_places = 16;

/// Rows of the largest tile of a product, and channels in of which a block's products are computed
/// together, for a gradient.
inline constexpr std::int64_t winograd_rows = 12;
template <typename T>
inline constexpr std::int64_t winograd_columns = 2 * winograd_channels<T>;

/// Tiles that are computed together: of few channels so many that they stay in the second-level
/// cache, of many so many that what belongs to the weights is not read too often.
inline constexpr std::int64_t winograd_block_of_few = 24;
inline constexpr std::int64_t winograd_block_of_many = 96;

// Of each file its own, which may be compiled for another instruction set.
namespace {

/// How many tiles of 2x2 outputs cover the images; the last of a row or column may be cut.
constexpr std::int64_t winograd_tiles(const WinogradShape& shape) {
  return shape.samples * ((shape.height + 1) / 2) * ((shape.width + 1) / 2);
}

constexpr std::int64_t winograd_block(const WinogradShape& shape) {
  return shape.in + shape.out <= 256 ? winograd_block_of_few : winograd_block_of_many;
}

constexpr std::int64_t winograd_block_of_gradient(const WinogradShape& shape) {
  return shape.in + shape.out <= 512 ? 2 * winograd_block_of_many : winograd_block_of_many;
}

/// Values for the transformed tiles of a block, and for a pixel outside of the image.
constexpr std::int64_t winograd_scratch(const WinogradShape& shape) {
  return shape.in + winograd_places * winograd_block(shape) * (shape.in + shape.out);
}

/// The same for the gradient, with products, of `count` of the channels out.
template <typename T>
constexpr std::int64_t winograd_gradient_scratch(const WinogradShape& shape, std::int64_t count) {
  const std::int64_t pixel = shape.in > shape.out ? shape.in : shape.out;
  const std::int64_t tiles = winograd_block_of_gradient(shape) * (shape.in + count);
  return pixel + winograd_places * (tiles + winograd_rows * winograd_columns<T>);
}

}  // namespace

/// Transforms the weights of the outputs `first` to `first + count`, multiples of
/// winograd_channels, for a convolution: winograd_places * in * out values, in the order in which
/// it reads them. Backwards for that of the output's gradient [.., out], which gives the input's:
/// by each weight turned about its centre, and there `first` and `count` are of the channels in.
template <typename T>
struct WinogradWeights {
  const T* weight;
  std::int64_t in;
  std::int64_t out;
  bool backwards;
  T* transformed;
};

/// y [.., out] of x [.., in].
template <typename T>
struct WinogradConvolution {
  const T* x;
  const T* transformed;
  T* y;
  WinogradShape shape;
  T* scratch;  // winograd_scratch values
};

/// The gradient of the weights, for the channels out `first` to `first + count`.
template <typename T>
struct WinogradGradient {
  const T* x;
  const T* gradient;  // of the output
  T* sum;             // as the weights lie
  WinogradShape shape;
  bool added;  // to what `sum` holds; else in its place
  T* scratch;  // winograd_gradient_scratch values
};

template <typename T>
struct WinogradKernels {
  void (*weights)(const WinogradWeights<T>& work, std::int64_t first, std::int64_t count);
  /// Of the tiles `first` to `first + count`.
  void (*convolve)(const WinogradConvolution<T>& work, std::int64_t first, std::int64_t count);
  void (*gradient)(const WinogradGradient<T>& work, std::int64_t first, std::int64_t count);

  template <InstructionSet set>
  static const WinogradKernels& of();
};

}  // namespace stratagem::models::kernels
