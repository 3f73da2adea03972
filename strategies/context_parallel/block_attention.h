// Attention of a block of queries to a block of keys and values, and the sum of such blocks: the
// running maximum of FlashAttention (Dao et al. 2022, "FlashAttention", section 3.1) over ranks.
#pragma once

#include <ATen/core/Tensor.h>

namespace stratagem::context_parallel {

/// The tensors of a block, [n, heads, positions, features of a head]; any strides whose last is 1.
struct QueriesKeysValues {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

/// Attention's output, as `queries`, and the logarithm of each query's sum of exponentials,
/// [n, heads, queries], in float32 for 16-bit formats.
struct BlockOutput {
  at::Tensor output;
  at::Tensor log_sum;
};

struct BlockGradients {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

/// Scales by 1 / sqrt(features). `causal`: query i sees keys up to i; there are as many keys.
BlockOutput block_attention(const QueriesKeysValues& block, bool causal);

/// Returns the gradients of one block from the output and the sums of all blocks that its queries
/// see, and the gradient of that output.
BlockGradients block_attention_backward(const at::Tensor& output_gradient,
                                        const QueriesKeysValues& block, const BlockOutput& whole,
                                        bool causal);

/// Adds what the same queries see in another block to `sum`, in the format of the sums.
void merge(BlockOutput& sum, const BlockOutput& block);

}  // namespace stratagem::context_parallel
