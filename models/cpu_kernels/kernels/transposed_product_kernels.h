// left^T right, as the gradient of a linear layer's weight is one: of matrices that fit in no
// cache. No torch in here: see transposed_product_loops.h.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

/// Rows of each matrix follow one another without a gap, but for left's.
struct TransposedProduct {
  const float* left;  // [depth, rows]
  std::int64_t left_row;
  const float* right;  // [depth, columns]
  float* sum;          // [rows, columns]
  std::int64_t depth;
  std::int64_t rows;
  std::int64_t columns;  // a multiple of transposed_product_columns
  bool added;            // to what `sum` holds; else in its place
  float* scratch;        // transposed_product_scratch values
};

/// Whole panels of the widest vectors.
inline constexpr std::int64_t transposed_product_columns = 32;

/// A block of right that the second-level cache keeps, and of left a few tiles.
inline constexpr std::int64_t block_of_right = 512;
inline constexpr std::int64_t block_of_left = 96;
inline constexpr std::int64_t transposed_product_scratch =
    block_of_right * (block_of_right + block_of_left);

struct TransposedProductKernels {
  void (*product)(const TransposedProduct& work);

  template <InstructionSet set>
  static const TransposedProductKernels& of();
};

}  // namespace stratagem::models::kernels
