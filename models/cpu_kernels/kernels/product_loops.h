// Products of small matrices in the caches. One file for each instruction set includes this.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/vectors.h"

namespace stratagem::models::kernels {
namespace {

/// Element [i, k] lies at i * row + k * column.
template <typename T>
struct StridedMatrix {
  const T* data;
  std::int64_t row;
  std::int64_t column;
};

/// Rows of whole panels (two vectors), `row` values apart.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t row;
};

struct ProductShape {
  std::int64_t rows;
  std::int64_t columns;  // rounded up to whole panels
  std::int64_t depth;
};

enum class Sum { replaced, added_to };

/// A panel is two vectors wide; the sums of this many rows fill the registers.
inline constexpr int rows_of_a_tile = vector_bytes == 64 ? 12 : 6;
template <typename T>
constexpr std::int64_t panel = 2 * vector_size<T>;

template <typename T, int Rows>
void product_tile(const StridedMatrix<T>& left, const Matrix<const T>& right, const Matrix<T>& sum,
                  std::int64_t depth, Sum mode) {
  Vector<T> low[Rows];   // NOLINT(modernize-avoid-c-arrays): nothing of the standard library here
  Vector<T> high[Rows];  // NOLINT(modernize-avoid-c-arrays)
  for (int i = 0; i < Rows; ++i) {
    const T* const row = sum.data + i * sum.row;
    low[i] = mode == Sum::added_to ? load(row) : Vector<T>{};
    high[i] = mode == Sum::added_to ? load(row + vector_size<T>) : Vector<T>{};
  }
  const T* of_left = left.data;
  const T* of_right = right.data;
  for (std::int64_t k = 0; k < depth; ++k, of_left += left.column, of_right += right.row) {
    const Vector<T> first = load(of_right);
    const Vector<T> second = load(of_right + vector_size<T>);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      const T factor = of_left[i * left.row];
      low[i] += first * factor;
      high[i] += second * factor;
    }
  }
  for (int i = 0; i < Rows; ++i) {
    T* const row = sum.data + i * sum.row;
    store(low[i], row);
    store(high[i], row + vector_size<T>);
  }
}

/// Computes the last rows, fewer than a tile has.
template <typename T, int Rows = rows_of_a_tile - 1>
void product_rest(std::int64_t rows, const StridedMatrix<T>& left, const Matrix<const T>& right,
                  const Matrix<T>& sum, std::int64_t depth, Sum mode) {
  if (rows == Rows) return product_tile<T, Rows>(left, right, sum, depth, mode);
  if constexpr (Rows > 1) product_rest<T, Rows - 1>(rows, left, right, sum, depth, mode);
}

/// Computes sum [rows, columns] (+)= left [rows, depth] right [depth, columns].
template <typename T>
void product(const StridedMatrix<T>& left, const Matrix<const T>& right, const Matrix<T>& sum,
             const ProductShape& shape, Sum mode) {
  for (std::int64_t column = 0; column < shape.columns; column += panel<T>) {
    const Matrix<const T> of_right = {right.data + column, right.row};
    for (std::int64_t row = 0; row < shape.rows; row += rows_of_a_tile) {
      const StridedMatrix<T> of_left = {left.data + row * left.row, left.row, left.column};
      const Matrix<T> of_sum = {sum.data + row * sum.row + column, sum.row};
      const std::int64_t rest = shape.rows - row;
      if (rest >= rows_of_a_tile) {
        product_tile<T, rows_of_a_tile>(of_left, of_right, of_sum, shape.depth, mode);
      } else {
        product_rest<T>(rest, of_left, of_right, of_sum, shape.depth, mode);
      }
    }
  }
}

}  // namespace
}  // namespace stratagem::models::kernels
