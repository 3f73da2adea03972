#include "strategies/context_parallel/block_attention.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <cmath>
#include <limits>

#include "models/cpu_kernels/kernel_choice.h"

namespace stratagem::context_parallel {
namespace {

/// Returns the scores of a block in the format of the sums.
at::Tensor scores_of(const QueriesKeysValues& block, bool causal) {
  const at::ScalarType computed = at::toOpMathType(block.queries.scalar_type());
  const double scale = 1 / std::sqrt(static_cast<double>(block.queries.size(-1)));
  const at::Tensor scores =
      at::matmul(block.queries.to(computed), block.keys.to(computed).transpose(-1, -2)).mul_(scale);
  if (!causal) return scores;
  const at::Tensor hidden =
      at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).triu_(1);
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
}

}  // namespace

// ATen's kernels of GPUs pad the sums, each in its own way, and take no float64.
BlockOutput block_attention(const QueriesKeysValues& block, bool causal) {
  const auto& [queries, keys, values] = block;
  models::record_left_to_aten(queries, "attention", "keys of other ranks");
  if (queries.is_cpu()) {
    const auto [output, log_sum] =
        at::_scaled_dot_product_flash_attention_for_cpu(queries, keys, values, 0, causal);
    return {output, log_sum};
  }
  const at::Tensor scores = scores_of(block, causal);
  const at::Tensor log_sum = scores.logsumexp(-1);
  const at::Tensor weights = (scores - log_sum.unsqueeze(-1)).exp_();
  return {at::matmul(weights, values.to(weights.scalar_type())).to(values.scalar_type()), log_sum};
}

BlockGradients block_attention_backward(const at::Tensor& output_gradient,
                                        const QueriesKeysValues& block, const BlockOutput& whole,
                                        bool causal) {
  const auto& [queries, keys, values] = block;
  if (queries.is_cpu()) {
    const auto [of_queries, of_keys, of_values] =
        at::_scaled_dot_product_flash_attention_for_cpu_backward(
            output_gradient, queries, keys, values, whole.output, whole.log_sum, 0, causal);
    return {of_queries, of_keys, of_values};
  }
  const at::Tensor weights = (scores_of(block, causal) - whole.log_sum.unsqueeze(-1)).exp_();
  const at::ScalarType computed = weights.scalar_type();
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(-1)));
  const at::Tensor gradient = output_gradient.to(computed);
  const at::Tensor products = (gradient * whole.output.to(computed)).sum(-1, /*keepdim=*/true);
  const at::Tensor of_scores =
      (at::matmul(gradient, values.to(computed).transpose(-1, -2)) - products) * weights * scale;
  return {at::matmul(of_scores, keys.to(computed)).to(queries.scalar_type()),
          at::matmul(of_scores.transpose(-1, -2), queries.to(computed)).to(keys.scalar_type()),
          at::matmul(weights.transpose(-1, -2), gradient).to(values.scalar_type())};
}

void merge(BlockOutput& sum, const BlockOutput& block) {
  const at::Tensor difference = block.log_sum - sum.log_sum;
  const at::Tensor share = difference.sigmoid().unsqueeze(-1);
  sum.output.add_((block.output.to(sum.output.scalar_type()) - sum.output).mul_(share));
  sum.log_sum.copy_(at::maximum(block.log_sum, sum.log_sum) + difference.abs().neg().exp().log1p());
}

}  // namespace stratagem::context_parallel
