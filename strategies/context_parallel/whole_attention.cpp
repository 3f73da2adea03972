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

/// Returns keys, or values, [n, groups, positions, ...], for each query head, [n, heads, positions,
/// ...].
at::Tensor for_all_heads(const at::Tensor& of_groups, const GroupedHeads& heads) {
  if (heads.queries == 1) return of_groups;
  return of_groups.unsqueeze(2).expand({-1, -1, heads.queries, -1, -1}).flatten(1, 2);
}

/// Returns the sum over the query heads of each group, in the format of sums.
at::Tensor for_groups(const at::Tensor& of_heads, const GroupedHeads& heads) {
  if (heads.queries == 1) return of_heads;
  return of_heads.unflatten(1, {heads.groups, heads.queries})
      .sum(2, /*keepdim=*/false, at::toOpMathType(of_heads.scalar_type()));
}

QueriesKeysValues tensors_of(const Block& block, const at::Tensor& queries,
                             const at::Tensor& keys_and_values, const GroupedHeads& heads) {
  return {.queries = rows(queries, block.queries),
          .keys = for_all_heads(rows(keys_and_values[0].transpose(1, 2), block.keys), heads),
          .values = for_all_heads(rows(keys_and_values[1].transpose(1, 2), block.keys), heads)};
}

}  // namespace

at::Tensor queries_of(const at::Tensor& qkv, const GroupedHeads& heads) {
  return qkv.unflatten(2, {3, heads.count(), -1}).select(2, 0).transpose(1, 2);
}

at::Tensor keys_and_values_of(const at::Tensor& qkv, const GroupedHeads& heads) {
  return qkv.unflatten(2, {3, heads.groups, heads.queries, -1})
      .narrow(2, 1, 2)
      .select(4, 0)
      .permute({2, 0, 1, 3, 4})
      .contiguous();
}

void AttentionSum::add(const Block& block, const at::Tensor& keys_and_values) {
  BlockOutput found =
      block_attention(tensors_of(block, queries_, keys_and_values, heads_), block.causal);
  if (!sum_.output.defined()) {
    const at::ScalarType summed = at::toOpMathType(queries_.scalar_type());
    sum_ = {.output = found.output.to(summed), .log_sum = std::move(found.log_sum)};
    return;
  }
  BlockOutput part{.output = rows(sum_.output, block.queries),
                   .log_sum = rows(sum_.log_sum, block.queries)};
  merge(part, found);
}

AttentionGradients::AttentionGradients(const SavedAttention& saved,
                                       const at::Tensor& output_gradient)
    : queries_(queries_of(saved.qkv, saved.heads)),
      heads_(saved.heads),
      whole_(saved.whole),
      output_gradient_(output_gradient.unflatten(2, {queries_.size(1), -1}).transpose(1, 2)),
      of_queries_(at::zeros(queries_.sizes(),
                            queries_.options().dtype(at::toOpMathType(queries_.scalar_type())))) {}

void AttentionGradients::add(const Block& block, const at::Tensor& keys_and_values,
                             const at::Tensor& sum) {
  const BlockOutput whole{.output = rows(whole_.output, block.queries),
                          .log_sum = rows(whole_.log_sum, block.queries)};
  const BlockGradients found = block_attention_backward(
      rows(output_gradient_, block.queries), tensors_of(block, queries_, keys_and_values, heads_),
      whole, block.causal);
  rows(of_queries_, block.queries).add_(found.queries);
  rows(sum[0].transpose(1, 2), block.keys).add_(for_groups(found.keys, heads_));
  rows(sum[1].transpose(1, 2), block.keys).add_(for_groups(found.values, heads_));
}

at::Tensor AttentionGradients::of_qkv(const at::Tensor& keys_and_values) const {
  const at::Tensor queries = of_queries_.transpose(1, 2).unsqueeze(2);
  at::Tensor all = at::empty(
      {queries.size(0), queries.size(1), 3, queries.size(3), queries.size(4)}, queries_.options());
  all.narrow(2, 0, 1).copy_(queries);
  const at::Tensor of_groups = all.narrow(2, 1, 2).unflatten(3, {heads_.groups, heads_.queries});
  if (heads_.queries > 1) of_groups.zero_();
  of_groups.select(4, 0).copy_(keys_and_values.permute({1, 2, 0, 3, 4}));
  return all.flatten(2);
}

void save(torch::autograd::AutogradContext& context, const SavedAttention& attention,
          const SharedPositions& shared) {
  context.save_for_backward(
      {attention.qkv, attention.whole.output, attention.whole.log_sum, attention.gathered});
  context.saved_data["groups"] = attention.heads.groups;
  context.saved_data["queries"] = attention.heads.queries;
  context.saved_data["group"] = layer_exchange::capsule_of(shared.group);
  context.saved_data["order"] = shared.order.name();
}

SavedAttention saved_in(const torch::autograd::AutogradContext& context) {
  const auto tensors = context.get_saved_variables();
  return {.qkv = tensors[0],
          .heads = {.groups = context.saved_data.at("groups").toInt(),
                    .queries = context.saved_data.at("queries").toInt()},
          .whole = {.output = tensors[1], .log_sum = tensors[2]},
          .gathered = tensors[3]};
}

SharedPositions shared_in(const torch::autograd::AutogradContext& context) {
  return {layer_exchange::group_in(context.saved_data.at("group")),
          ContextOrder::find(context.saved_data.at("order").toStringRef()).value()};
}

}  // namespace stratagem::context_parallel
