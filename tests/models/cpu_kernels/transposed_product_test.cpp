// left^T right by every instruction set that this processor has, against sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/kernels/transposed_product_kernels.h"

namespace stratagem::models::transposed_product_test {
namespace {

struct Shape {
  std::int64_t depth;
  std::int64_t rows;
  std::int64_t columns;
};

/// Between -1 and 1, and alike in no two places near one another.
std::vector<float> values(std::int64_t count, double of) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(static_cast<float>(std::sin(static_cast<double>(i) * of)));
  }
  return all;
}

void expect_product(void (*kernel)(const kernels::TransposedProduct&), const Shape& shape,
                    bool added) {
  constexpr std::int64_t gap = 3;  // left is a part of wider rows
  const std::int64_t left_row = shape.rows + gap;
  const auto left = values(shape.depth * left_row, 0.7);
  const auto right = values(shape.depth * shape.columns, 1.3);
  const auto before = values(shape.rows * shape.columns, 0.3);
  std::vector<float> sum = before;
  std::vector<float> scratch(kernels::transposed_product_scratch);
  kernel({.left = left.data(),
          .left_row = left_row,
          .right = right.data(),
          .sum = sum.data(),
          .depth = shape.depth,
          .rows = shape.rows,
          .columns = shape.columns,
          .added = added,
          .scratch = scratch.data()});
  const auto at = [](const std::vector<float>& matrix, std::int64_t index) {
    return static_cast<double>(matrix[static_cast<std::size_t>(index)]);
  };
  const double bound = 4 * 0x1p-24 * static_cast<double>(shape.depth);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t column = 0; column < shape.columns; ++column) {
      const std::int64_t index = row * shape.columns + column;
      double expected = added ? at(before, index) : 0;
      for (std::int64_t k = 0; k < shape.depth; ++k) {
        expected += at(left, k * left_row + row) * at(right, k * shape.columns + column);
      }
      ASSERT_NEAR(at(sum, index), expected, bound) << row << ", " << column;
    }
  }
}

TEST(TransposedProduct, IsTheSumOfProductsByEveryInstructionSet) {
  // Less than a tile, whole tiles and a rest, more than a block each way.
  for (const Shape& shape :
       {Shape{1, 1, 32}, {7, 13, 64}, {40, 96, 32}, {30, 107, 96}, {515, 5, 544}, {1030, 25, 32}}) {
    for (const bool added : {false, true}) {
      int number = 0;
      for (const kernels::InstructionSet set : kernels::supported_sets()) {
        SCOPED_TRACE(testing::Message()
                     << shape.depth << " x " << shape.rows << " x " << shape.columns
                     << ", instruction set " << number++ << (added ? ", added" : ""));
        expect_product(kernels::kernels_of<kernels::TransposedProductKernels>(set).product, shape,
                       added);
      }
    }
  }
}

}  // namespace
}  // namespace stratagem::models::transposed_product_test
