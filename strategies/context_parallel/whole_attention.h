// The common part of forms that bring other ranks' keys and values to a rank's queries: attention
// as a sum of blocks, with its gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <utility>

#include "strategies/context_parallel/attention_form.h"
#include "strategies/context_parallel/block_attention.h"
#include "strategies/context_parallel/context_positions.h"

namespace stratagem::context_parallel {

using models::GroupedHeads;

/// Returns the queries of [n, own, 3 features] as a view [n, heads, own, features of a head].
at::Tensor queries_of(const at::Tensor& qkv, const GroupedHeads& heads);

/// Returns its keys and values, one of each for a group, [2, n, own, groups, features of a head],
/// contiguous, to be sent.
at::Tensor keys_and_values_of(const at::Tensor& qkv, const GroupedHeads& heads);

/// A collective while the caller computes, or, without overlap, before.
class Exchange {
 public:
  Exchange(const layer_exchange::ExchangeGroup& group, layer_exchange::PendingCollective pending)
      : pending_(std::move(pending)) {
    if (!group.options().overlap) received_ = pending_.wait();
  }
  at::Tensor wait() { return received_.defined() ? received_ : pending_.wait(); }

 private:
  layer_exchange::PendingCollective pending_;
  at::Tensor received_;
};

/// Attention of the own queries, block by block.
class AttentionSum {
 public:
  AttentionSum(const at::Tensor& qkv, const GroupedHeads& heads)
      : queries_(queries_of(qkv, heads)), heads_(heads) {}

  /// Adds a block of keys and values [2, n, positions, groups, features of a head]. The first one
  /// has all queries.
  void add(const Block& block, const at::Tensor& keys_and_values);
  const BlockOutput& whole() const { return sum_; }

 private:
  at::Tensor queries_;
  GroupedHeads heads_;
  BlockOutput sum_;
};

/// The tensors that a node keeps for its backward pass; the output has the format of `qkv`.
struct SavedAttention {
  at::Tensor qkv;
  GroupedHeads heads;
  BlockOutput whole;
  at::Tensor gathered = {};  // all ranks' keys and values, if they are kept
};

/// The gradients of such a sum, block by block.
class AttentionGradients {
 public:
  /// `output_gradient` is [n, own, features].
  AttentionGradients(const SavedAttention& saved, const at::Tensor& output_gradient);

  /// Adds a block's gradient to that of the queries, and to `sum`, which is like the block's keys
  /// and values, in the format of sums.
  void add(const Block& block, const at::Tensor& keys_and_values, const at::Tensor& sum);

  /// Returns the gradient of `qkv` with that of the own keys and values, which the first query head
  /// of each group has for all of them.
  at::Tensor of_qkv(const at::Tensor& keys_and_values) const;

 private:
  at::Tensor queries_;
  GroupedHeads heads_;
  BlockOutput whole_;
  at::Tensor output_gradient_;
  at::Tensor of_queries_;
};

struct ForwardResult {
  BlockOutput whole;
  at::Tensor gathered = {};
};

/// The passes of a form.
using ForwardPass = ForwardResult (*)(const at::Tensor& qkv, const GroupedHeads& heads,
                                      const SharedPositions& shared);
using BackwardPass = at::Tensor (*)(const SavedAttention& saved, const at::Tensor& output_gradient,
                                    const SharedPositions& shared);

void save(torch::autograd::AutogradContext& context, const SavedAttention& attention,
          const SharedPositions& shared);
SavedAttention saved_in(const torch::autograd::AutogradContext& context);
SharedPositions shared_in(const torch::autograd::AutogradContext& context);

/// AttentionForm::attention by these passes.
template <ForwardPass forward_pass, BackwardPass backward_pass>
class AttentionByBlocks
    : public torch::autograd::Function<AttentionByBlocks<forward_pass, backward_pass>> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& qkv,
                            const GroupedHeads& heads, const SharedPositions& shared) {
    const auto [whole, gathered] = forward_pass(qkv, heads, shared);
    const at::Tensor output = whole.output.to(qkv.scalar_type());
    save(*context,
         {.qkv = qkv, .heads = heads, .whole = {output, whole.log_sum}, .gathered = gathered},
         shared);
    return output.transpose(1, 2).flatten(2);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {backward_pass(saved_in(*context), gradients[0], shared_in(*context)), {}, {}};
  }

  static at::Tensor of(const at::Tensor& qkv, const GroupedHeads& heads,
                       const SharedPositions& shared) {
    return AttentionByBlocks::apply(qkv, heads, shared);
  }
};

}  // namespace stratagem::context_parallel
