// 3x3 convolutions of stride 1 and padding 1 with fewer multiplications (Winograd 1980, "Arithmetic
// Complexity of Computations"; Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural
// Networks", section 4.1, F(2x2, 3x3)): 16 products give four outputs a channel from 4x4 inputs,
// where the definition takes 36. Images and filters are transformed, and at each of the 16 places
// the sums over channels are one product of matrices. It uses no torch: see batch_norm_kernels.h.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

/// Pixels are [samples, height, width, channels], weights [out, 3, 3, in].
struct WinogradShape {
  std::int64_t samples;
  std::int64_t height;
  std::int64_t width;
  std::int64_t in;  // a multiple of winograd_channels, like out
  std::int64_t out;
};

/// The width of whole panels of the widest vectors.
template <typename T>
inline constexpr std::int64_t winograd_channels = 128 / sizeof(T);

/// The elements of a transformed tile, 4x4.
inline constexpr std::int64_t winograd_places = 16;

/// The rows of a product's largest tile, and the channels in that a gradient's block computes
/// together.
inline constexpr std::int64_t winograd_rows = 12;
template <typename T>
inline constexpr std::int64_t winograd_columns = 2 * winograd_channels<T>;

/// The tiles computed together: for few channels a number that stays in the second-level cache, for
/// many one that reads the weights' part rarely.
inline constexpr std::int64_t winograd_block_of_few = 24;
inline constexpr std::int64_t winograd_block_of_many = 96;

// Each file has its own copy, because files are compiled for different instruction sets.
namespace {

/// Returns the number of 2x2 tiles that cover the images; the last of a row or column may be cut.
constexpr std::int64_t winograd_tiles(const WinogradShape& shape) {
  return shape.samples * ((shape.height + 1) / 2) * ((shape.width + 1) / 2);
}

constexpr std::int64_t winograd_block(const WinogradShape& shape) {
  return shape.in + shape.out <= 256 ? winograd_block_of_few : winograd_block_of_many;
}

constexpr std::int64_t winograd_block_of_gradient(const WinogradShape& shape) {
  return shape.in + shape.out <= 512 ? 2 * winograd_block_of_many : winograd_block_of_many;
}

/// Returns the number of values for a block's transformed tiles and a pixel outside the image.
constexpr std::int64_t winograd_scratch(const WinogradShape& shape) {
  return shape.in + winograd_places * winograd_block(shape) * (shape.in + shape.out);
}

/// Returns the number of values for the gradient of `count` channels out, with its products.
template <typename T>
constexpr std::int64_t winograd_gradient_scratch(const WinogradShape& shape, std::int64_t count) {
  const std::int64_t pixel = shape.in > shape.out ? shape.in : shape.out;
  const std::int64_t tiles = winograd_block_of_gradient(shape) * (shape.in + count);
  return pixel + winograd_places * (tiles + winograd_rows * winograd_columns<T>);
}

}  // namespace

/// Transforms the weights of the outputs `first` to `first + count`, multiples of
/// winograd_channels, into winograd_places * in * out values in the convolution's reading order.
/// `backwards` serves the convolution of the output's gradient, which gives the input's: each
/// weight is rotated by 180 degrees, and `first` and `count` refer to the channels in.
template <typename T>
struct WinogradWeights {
  const T* weight;
  std::int64_t in;
  std::int64_t out;
  bool backwards;
  T* transformed;
};

/// Computes y [.., out] from x [.., in].
template <typename T>
struct WinogradConvolution {
  const T* x;
  const T* transformed;
  T* y;
  WinogradShape shape;
  T* scratch;  // winograd_scratch values
};

/// Computes the weights' gradient for the channels out `first` to `first + count`.
template <typename T>
struct WinogradGradient {
  const T* x;
  const T* gradient;  // the output's gradient
  T* sum;             // in the weights' layout
  WinogradShape shape;
  bool added;  // to the values in `sum`; false: replaces them
  T* scratch;  // winograd_gradient_scratch values
};

template <typename T>
struct WinogradKernels {
  void (*weights)(const WinogradWeights<T>& work, std::int64_t first, std::int64_t count);
  /// Computes the tiles `first` to `first + count`.
  void (*convolve)(const WinogradConvolution<T>& work, std::int64_t first, std::int64_t count);
  void (*gradient)(const WinogradGradient<T>& work, std::int64_t first, std::int64_t count);

  template <InstructionSet set>
  static const WinogradKernels& of();
};

}  // namespace stratagem::models::kernels
