// left^T right of matrices that fit in no cache, for example the gradient of a linear layer's
// weight. It uses no torch: see batch_norm_kernels.h.
#pragma once

#include <cstdint>

#include "models/cpu_kernels/kernels/instruction_set.h"

namespace stratagem::models::kernels {

/// The matrices' rows are contiguous, except left's.
struct TransposedProduct {
  const float* left;  // [depth, rows]
  std::int64_t left_row;
  const float* right;  // [depth, columns]
  float* sum;          // [rows, columns]
  std::int64_t depth;
  std::int64_t rows;
  std::int64_t columns;  // a multiple of transposed_product_columns
  bool added;            // to the values in `sum`; false: replaces them
  float* scratch;        // transposed_product_scratch values
};

/// The width of whole panels of the widest vectors.
inline constexpr std::int64_t transposed_product_columns = 32;

/// The second-level cache holds a block of right and a few tiles of left.
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
