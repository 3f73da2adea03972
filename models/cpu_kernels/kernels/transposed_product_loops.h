// left^T right with both operands packed in the order in which the tiles read them, so that a tile
// walks through memory without a stride (Goto and van de Geijn 2008, "Anatomy of High-Performance
// Matrix Multiplication"). The sum to which a product adds is read once, after the products, and
// fetched while the tile before computes. One file for each instruction set includes this.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/cpu_kernels/kernels/product_loops.h"
#include "models/cpu_kernels/kernels/transposed_product_kernels.h"

namespace stratagem::models::kernels {
namespace {

static_assert(transposed_product_columns % panel<float> == 0);
static_assert(block_of_right % panel<float> == 0 && block_of_left % rows_of_a_tile == 0);

/// Packs consecutive panels, each [depth, panel].
inline void pack_right(const float* right, std::int64_t row, std::int64_t depth,
                       std::int64_t columns, float* packed) {
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* const from = right + k * row;
    for (std::int64_t column = 0; column < columns; column += panel<float>) {
      float* const to = packed + column * depth + k * panel<float>;
      store(load(from + column), to);
      store(load(from + column + vector_size<float>), to + vector_size<float>);
    }
  }
}

/// Packs consecutive tiles, each [depth, rows_of_a_tile]; the last may have fewer rows.
inline void pack_left(const float* left, std::int64_t row, std::int64_t depth, std::int64_t rows,
                      float* packed) {
  constexpr std::int64_t ahead = 8;
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* const from = left + k * row;
    if (k + ahead < depth) {
      for (std::int64_t i = 0; i < rows; i += 16) __builtin_prefetch(from + ahead * row + i);
    }
    std::int64_t first = 0;
    for (; first + rows_of_a_tile <= rows; first += rows_of_a_tile) {
      __builtin_memcpy(packed + first * depth + k * rows_of_a_tile, from + first,
                       rows_of_a_tile * sizeof(float));
    }
    const std::int64_t rest = rows - first;
    for (std::int64_t i = 0; i < rest; ++i) packed[first * depth + k * rest + i] = from[first + i];
  }
}

/// A tile's place in the sum and the next tile's.
struct TileOfSum {
  float* data;
  const float* next;
  std::int64_t row;
};

template <int Rows>
void packed_tile(const float* left, const float* right, const TileOfSum& sum, std::int64_t depth,
                 Sum mode) {
  Vector<float> low[Rows];   // NOLINT(modernize-avoid-c-arrays): nothing of the standard library
  Vector<float> high[Rows];  // NOLINT(modernize-avoid-c-arrays)
  for (int i = 0; i < Rows; ++i) {
    low[i] = Vector<float>{};
    high[i] = Vector<float>{};
    __builtin_prefetch(sum.next + i * sum.row, 1);
    __builtin_prefetch(sum.next + i * sum.row + vector_size<float>, 1);
  }
  for (std::int64_t k = 0; k < depth; ++k, left += Rows, right += panel<float>) {
    const Vector<float> first = load(right);
    const Vector<float> second = load(right + vector_size<float>);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      low[i] += first * left[i];
      high[i] += second * left[i];
    }
  }
  for (int i = 0; i < Rows; ++i) {
    float* const row = sum.data + i * sum.row;
    if (mode == Sum::added_to) {
      low[i] += load(row);
      high[i] += load(row + vector_size<float>);
    }
    store(low[i], row);
    store(high[i], row + vector_size<float>);
  }
}

template <int Rows = rows_of_a_tile>
void packed_tile_of(std::int64_t rows, const float* left, const float* right, const TileOfSum& sum,
                    std::int64_t depth, Sum mode) {
  if (rows == Rows) return packed_tile<Rows>(left, right, sum, depth, mode);
  if constexpr (Rows > 1) packed_tile_of<Rows - 1>(rows, left, right, sum, depth, mode);
}

/// Computes all rows of the sum for a packed block of right, a few tiles at a time.
inline void block_of_sum(const TransposedProduct& work, const float* right, std::int64_t columns,
                         float* packed_left) {
  const Sum mode = work.added ? Sum::added_to : Sum::replaced;
  for (std::int64_t block = 0; block < work.rows; block += block_of_left) {
    const std::int64_t rows = std::min(block_of_left, work.rows - block);
    pack_left(work.left + block, work.left_row, work.depth, rows, packed_left);
    for (std::int64_t first = 0; first < rows; first += rows_of_a_tile) {
      const auto of_tile = std::min<std::int64_t>(rows_of_a_tile, rows - first);
      for (std::int64_t column = 0; column < columns; column += panel<float>) {
        float* const sum = work.sum + (block + first) * work.columns + column;
        const bool last = column + panel<float> == columns;
        packed_tile_of(of_tile, packed_left + first * work.depth, right + column * work.depth,
                       {sum, last ? sum : sum + panel<float>, work.columns}, work.depth, mode);
      }
    }
  }
}

inline void transposed_product(const TransposedProduct& whole) {
  float* const packed_left = whole.scratch + block_of_right * block_of_right;
  for (std::int64_t k = 0; k < whole.depth; k += block_of_right) {
    TransposedProduct part = whole;
    part.left += k * whole.left_row;
    part.right += k * whole.columns;
    part.depth = std::min(block_of_right, whole.depth - k);
    part.added = whole.added || k > 0;
    for (std::int64_t column = 0; column < whole.columns; column += block_of_right) {
      const std::int64_t columns = std::min(block_of_right, whole.columns - column);
      pack_right(part.right + column, whole.columns, part.depth, columns, whole.scratch);
      TransposedProduct block = part;
      block.sum += column;
      block_of_sum(block, whole.scratch, columns, packed_left);
    }
  }
}

}  // namespace

template <InstructionSet set>
const TransposedProductKernels& TransposedProductKernels::of() {
  static constexpr TransposedProductKernels table = {transposed_product};
  return table;
}
template const TransposedProductKernels& TransposedProductKernels::of<own_set>();

}  // namespace stratagem::models::kernels
