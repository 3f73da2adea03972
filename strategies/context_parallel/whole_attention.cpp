#include "strategies/context_parallel/whole_attention.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <utility>

#include "strategies/layer_exchange/group_capsule.h"

namespace stratagem::context_parallel {
namespace {

constexpr std::int64_t query_dimension = 2;  // of [n, heads, positions, features of a head]

at::Tensor rows(const at::Tensor& of_heads, const Run& run) {
  return of_heads.narrow(query_dimension, run.start, run.count);
}

QueriesKeysValues tensors_of(const Block& block, const at::Tensor& queries,
                             const at::Tensor& keys_and_values) {
  return {.queries = rows(queries, block.queries),
          .keys = rows(keys_and_values[0].transpose(1, 2), block.keys),
          .values = rows(keys_and_values[1].transpose(1, 2), block.keys)};
}

}  // namespace

at::Tensor queries_of(const at::Tensor& qkv, std::int64_t heads) {
  return qkv.unflatten(2, {3, heads, -1}).select(2, 0).transpose(1, 2);
}

at::Tensor keys_and_values_of(const at::Tensor& qkv, std::int64_t heads) {
  return qkv.unflatten(2, {3, heads, -1}).narrow(2, 1, 2).permute({2, 0, 1, 3, 4}).contiguous();
}

void AttentionSum::add(const Block& block, const at::Tensor& keys_and_values) {
  BlockOutput found = block_attention(tensors_of(block, queries_, keys_and_values), block.causal);
  if (!sum_.output.defined()) {
    const at::ScalarType summed = at::toOpMathType(queries_.scalar_type());
    sum_ = {.output = found.output.to(summed), .log_sum = std::move(found.log_sum)};
    return;
  }
  BlockOutput part{.output = rows(sum_.output, block.queries),
                   .log_sum = rows(sum_.log_sum, block.queries)};
  merge(part, found);
}

AttentionGradients::AttentionGradients(at::Tensor queries, BlockOutput whole,
                                       const at::Tensor& output_gradient)
    : queries_(std::move(queries)),
      whole_(std::move(whole)),
      output_gradient_(output_gradient.unflatten(2, {queries_.size(1), -1}).transpose(1, 2)),
      of_queries_(at::zeros(queries_.sizes(),
                            queries_.options().dtype(at::toOpMathType(queries_.scalar_type())))) {}

void AttentionGradients::add(const Block& block, const at::Tensor& keys_and_values,
                             const at::Tensor& sum) {
  const BlockOutput whole{.output = rows(whole_.output, block.queries),
                          .log_sum = rows(whole_.log_sum, block.queries)};
  const BlockGradients found =
      block_attention_backward(rows(output_gradient_, block.queries),
                               tensors_of(block, queries_, keys_and_values), whole, block.causal);
  rows(of_queries_, block.queries).add_(found.queries);
  rows(sum[0].transpose(1, 2), block.keys).add_(found.keys);
  rows(sum[1].transpose(1, 2), block.keys).add_(found.values);
}

at::Tensor AttentionGradients::of_qkv(const at::Tensor& keys_and_values) const {
  const at::Tensor queries = of_queries_.transpose(1, 2).unsqueeze(2);
  at::Tensor all = at::empty(
      {queries.size(0), queries.size(1), 3, queries.size(3), queries.size(4)}, queries_.options());
  all.narrow(2, 0, 1).copy_(queries);
  all.narrow(2, 1, 2).copy_(keys_and_values.permute({1, 2, 0, 3, 4}));
  return all.flatten(2);
}

void save(torch::autograd::AutogradContext& context, const SavedAttention& attention,
          const SharedPositions& shared) {
  context.save_for_backward({attention.qkv, attention.whole.output, attention.whole.log_sum});
  context.saved_data["heads"] = attention.heads;
  context.saved_data["group"] = layer_exchange::capsule_of(shared.group);
  context.saved_data["order"] = shared.order.name();
}

SavedAttention saved_in(const torch::autograd::AutogradContext& context) {
  const auto tensors = context.get_saved_variables();
  return {.qkv = tensors[0],
          .heads = context.saved_data.at("heads").toInt(),
          .whole = {.output = tensors[1], .log_sum = tensors[2]}};
}

SharedPositions shared_in(const torch::autograd::AutogradContext& context) {
  return {layer_exchange::group_in(context.saved_data.at("group")),
          ContextOrder::find(context.saved_data.at("order").toStringRef()).value()};
}

}  // namespace stratagem::context_parallel
