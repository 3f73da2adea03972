// The attention kernels. One file for each instruction set includes this, see batch_norm_loops.h.
#pragma once

#include "models/cpu_kernels/kernels/attention_kernels.h"
#include "models/cpu_kernels/kernels/product_loops.h"
#include "models/cpu_kernels/kernels/softmax_loops.h"

namespace stratagem::models::kernels {
namespace {

/// Writes `from`^T, of [rows, columns], to `to` [columns, row_of_to]; pads with 0 behind `rows`.
template <typename T>
void transpose(Matrix<const T> from, std::int64_t rows, std::int64_t columns, T* __restrict to,
               std::int64_t row_of_to) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t first = 0; first < row_of_to; first += kTile) {
    for (std::int64_t column = 0; column < columns; ++column) {
      T* const tile = to + column * row_of_to + first;
      if (first + kTile <= rows) {
        const T* const values = from.data + first * from.row + column;
        for (std::int64_t i = 0; i < kTile; ++i) tile[i] = values[i * from.row];
      } else {
        for (std::int64_t i = 0; i < kTile; ++i) {
          tile[i] = first + i < rows ? from.data[(first + i) * from.row + column] : 0;
        }
      }
    }
  }
}

/// The queries from `first` on and their visible keys.
struct QueryBlock {
  std::int64_t first;
  std::int64_t rows;
  std::int64_t seen;     // first + rows
  std::int64_t columns;  // `seen` rounded up to whole panels
};

template <typename T>
QueryBlock query_block(const AttentionShape& shape, std::int64_t first) {
  const std::int64_t left = shape.sequence - first;
  const std::int64_t rows =
      left < attention_queries_of_a_block ? left : attention_queries_of_a_block;
  const std::int64_t seen = first + rows;
  return {first, rows, seen, (seen + panel<T> - 1) / panel<T> * panel<T>};
}

/// Computes each query's probabilities of its own and all earlier keys; other keys get 0.
/// key_columns is [features, keys], probabilities [rows, keys].
template <typename T>
void probabilities_of(const T* query, const T* key_columns, const AttentionShape& shape,
                      const QueryBlock& block, T* probabilities) {
  const std::int64_t keys = shape.keys;
  product<T>({query + block.first * shape.row, shape.row, 1}, {key_columns, keys},
             {probabilities, keys}, {block.rows, block.columns, shape.features}, Sum::replaced);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    softmax(probabilities + row * keys, block.first + row + 1, block.columns);
  }
}

template <typename T>
void attention_forward(const AttentionForward<T>& work, const AttentionShape& shape) {
  const std::int64_t row = shape.row;
  const std::int64_t keys = shape.keys;
  T* const key_columns = work.scratch;
  T* const probabilities = key_columns + shape.features * keys;
  transpose<T>({work.key, row}, shape.sequence, shape.features, key_columns, keys);
  for (std::int64_t first = 0; first < shape.sequence; first += attention_queries_of_a_block) {
    const QueryBlock block = query_block<T>(shape, first);
    probabilities_of(work.query, key_columns, shape, block, probabilities);
    product<T>({probabilities, keys, 1}, {work.value, row}, {work.mixed + first * row, row},
               {block.rows, row, block.seen}, Sum::replaced);
  }
}

template <typename T>
void attention_backward(const AttentionBackward<T>& work, const AttentionShape& shape) {
  const std::int64_t row = shape.row;
  const std::int64_t keys = shape.keys;
  T* const key_columns = work.scratch;
  T* const value_columns = key_columns + shape.features * keys;
  T* const probabilities = value_columns + shape.features * keys;
  T* const gradients = probabilities + attention_queries_of_a_block * keys;
  transpose<T>({work.key, row}, shape.sequence, shape.features, key_columns, keys);
  transpose<T>({work.value, row}, shape.sequence, shape.features, value_columns, keys);
  for (std::int64_t i = 0; i < shape.sequence * row; ++i) {
    work.key_gradient[i] = 0;
    work.value_gradient[i] = 0;
  }
  for (std::int64_t first = 0; first < shape.sequence; first += attention_queries_of_a_block) {
    const QueryBlock block = query_block<T>(shape, first);
    const T* const mixed_gradient = work.mixed_gradient + first * row;
    probabilities_of(work.query, key_columns, shape, block, probabilities);
    product<T>({probabilities, 1, keys}, {mixed_gradient, row}, {work.value_gradient, row},
               {block.seen, row, block.rows}, Sum::added_to);
    product<T>({mixed_gradient, row, 1}, {value_columns, keys}, {gradients, keys},
               {block.rows, block.columns, shape.features}, Sum::replaced);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      softmax_gradient(probabilities + i * keys, block.columns, gradients + i * keys);
    }
    product<T>({gradients, keys, 1}, {work.key, row}, {work.query_gradient + first * row, row},
               {block.rows, row, block.seen}, Sum::replaced);
    product<T>({gradients, 1, keys}, {work.query + first * row, row}, {work.key_gradient, row},
               {block.seen, row, block.rows}, Sum::added_to);
  }
}

}  // namespace

template <typename T>
template <InstructionSet set>
const AttentionKernels<T>& AttentionKernels<T>::of() {
  static constexpr AttentionKernels table = {attention_forward<T>, attention_backward<T>};
  return table;
}
template const AttentionKernels<float>& AttentionKernels<float>::of<own_set>();
template const AttentionKernels<double>& AttentionKernels<double>::of<own_set>();

}  // namespace stratagem::models::kernels
