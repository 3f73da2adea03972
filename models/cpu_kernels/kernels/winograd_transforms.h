// The transforms of F(2x2, 3x3) before and behind a tile's products, a vector of channels at a time
// (Lavin and Gray 2016, section 4.1; the points are 0, 1, -1 and infinity). One file for each
// instruction set includes this.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/vectors.h"

namespace stratagem::models::kernels {
namespace {

/// Each transforms a row or column of `in` values to `out` values.
struct InputTransform {
  static constexpr int in = 4;
  static constexpr int out = 4;
  template <typename T>
  static void apply(const Vector<T>* from, Vector<T>* to) {
    to[0] = from[0] - from[2];
    to[1] = from[1] + from[2];
    to[2] = from[2] - from[1];
    to[3] = from[1] - from[3];
  }
};

struct WeightTransform {
  static constexpr int in = 3;
  static constexpr int out = 4;
  template <typename T>
  static void apply(const Vector<T>* from, Vector<T>* to) {
    const Vector<T> outer = (from[0] + from[2]) * T{0.5};
    const Vector<T> middle = from[1] * T{0.5};
    to[0] = from[0];
    to[1] = outer + middle;
    to[2] = outer - middle;
    to[3] = from[2];
  }
};

struct OutputTransform {
  static constexpr int in = 4;
  static constexpr int out = 2;
  template <typename T>
  static void apply(const Vector<T>* from, Vector<T>* to) {
    to[0] = from[0] + from[1] + from[2];
    to[1] = from[1] - from[2] - from[3];
  }
};

/// The adjoint of OutputTransform.
struct OutputGradientTransform {
  static constexpr int in = 2;
  static constexpr int out = 4;
  template <typename T>
  static void apply(const Vector<T>* from, Vector<T>* to) {
    to[0] = from[0];
    to[1] = from[0] + from[1];
    to[2] = from[0] - from[1];
    to[3] = -from[1];
  }
};

/// The adjoint of WeightTransform.
struct WeightGradientTransform {
  static constexpr int in = 4;
  static constexpr int out = 3;
  template <typename T>
  static void apply(const Vector<T>* from, Vector<T>* to) {
    const Vector<T> even = (from[1] + from[2]) * T{0.5};
    to[0] = from[0] + even;
    to[1] = (from[1] - from[2]) * T{0.5};
    to[2] = even + from[3];
  }
};

// NOLINTBEGIN(modernize-avoid-c-arrays): nothing of the standard library here

/// Side x Side values, each a vector of channels.
template <typename T, int Side>
struct Square {
  Vector<T> at[Side][Side];
};

/// Transforms columns first, then rows.
template <typename Transform, typename T>
Square<T, Transform::out> transform_square(const Square<T, Transform::in>& from) {
  Vector<T> half_way[Transform::out][Transform::in];
#pragma GCC unroll 4
  for (int column = 0; column < Transform::in; ++column) {
    Vector<T> of_column[Transform::in];
    Vector<T> result[Transform::out];
#pragma GCC unroll 4
    for (int row = 0; row < Transform::in; ++row) of_column[row] = from.at[row][column];
    Transform::template apply<T>(of_column, result);
#pragma GCC unroll 4
    for (int row = 0; row < Transform::out; ++row) half_way[row][column] = result[row];
  }
  Square<T, Transform::out> to{};
#pragma GCC unroll 4
  for (int row = 0; row < Transform::out; ++row) {
    Transform::template apply<T>(half_way[row], to.at[row]);
  }
  return to;
}

/// The addresses of a square's values: pixels, or one matrix for each place.
template <typename T, int Side>
struct SquareOf {
  T* at[Side][Side];
};
// NOLINTEND(modernize-avoid-c-arrays)

template <typename T, int Side>
Square<T, Side> load_square(const SquareOf<const T, Side>& values, std::int64_t channel) {
  Square<T, Side> square{};
#pragma GCC unroll 4
  for (int row = 0; row < Side; ++row) {
#pragma GCC unroll 4
    for (int column = 0; column < Side; ++column) {
      square.at[row][column] = load(values.at[row][column] + channel);
    }
  }
  return square;
}

/// Loads places that lie `step` values apart, row by row.
template <typename T, int Side>
Square<T, Side> load_places(const T* first, std::int64_t step) {
  Square<T, Side> square{};
#pragma GCC unroll 4
  for (int row = 0; row < Side; ++row) {
#pragma GCC unroll 4
    for (int column = 0; column < Side; ++column) {
      square.at[row][column] = load(first + (row * Side + column) * step);
    }
  }
  return square;
}

template <typename T, int Side>
void store_places(const Square<T, Side>& square, T* first, std::int64_t step) {
#pragma GCC unroll 4
  for (int row = 0; row < Side; ++row) {
#pragma GCC unroll 4
    for (int column = 0; column < Side; ++column) {
      store(square.at[row][column], first + (row * Side + column) * step);
    }
  }
}

template <typename T, int Side>
void add_to(Square<T, Side>& sum, const Square<T, Side>& square) {
  for (int row = 0; row < Side; ++row) {
    for (int column = 0; column < Side; ++column) {
      sum.at[row][column] += square.at[row][column];
    }
  }
}

}  // namespace
}  // namespace stratagem::models::kernels
