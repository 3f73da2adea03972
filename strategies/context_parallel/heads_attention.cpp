// Attention whose heads are shared by the ranks that share a sequence: an all-to-all turns parts of
// the positions into parts of the heads, and another one turns the result back (Jacobs et al. 2023,
// "DeepSpeed Ulysses", section 3).
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "models/cpu_kernels/attention.h"
#include "strategies/context_parallel/attention_form.h"
#include "strategies/layer_exchange/group_capsule.h"

namespace stratagem::context_parallel {
namespace {

using layer_exchange::ExchangeGroup;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using ExchangePass = at::Tensor (*)(const at::Tensor&, std::int64_t, ExchangeGroup&);

/// [n, own positions, parts, features] -> [n, all positions, parts, this rank's features].
at::Tensor with_own_heads(const at::Tensor& x, std::int64_t parts, ExchangeGroup& group) {
  const at::Tensor by_rank =
      x.unflatten(2, {parts, group.size(), -1}).permute({3, 0, 1, 2, 4}).contiguous();
  const at::Tensor received = group.all_to_all(by_rank).wait();
  return received.transpose(0, 1).flatten(3, 4).flatten(1, 2);
}

/// [n, all positions, parts, this rank's features] -> [n, own positions, parts, features].
at::Tensor with_own_positions(const at::Tensor& x, std::int64_t parts, ExchangeGroup& group) {
  const at::Tensor by_rank =
      x.unflatten(2, {parts, -1}).unflatten(1, {group.size(), -1}).transpose(0, 1).contiguous();
  const at::Tensor received = group.all_to_all(by_rank).wait();
  return received.permute({1, 2, 3, 0, 4}).flatten(2, 4);
}

/// Each exchange is the derivative of the other.
template <ExchangePass forward_pass, ExchangePass backward_pass>
class Exchanged : public torch::autograd::Function<Exchanged<forward_pass, backward_pass>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t parts,
                            ExchangeGroup* group) {
    context->saved_data["group"] = layer_exchange::capsule_of(*group);
    context->saved_data["parts"] = parts;
    const at::Tensor y = forward_pass(x, parts, *group);
    // The next layer may write in place, which autograd refuses for a view made here.
    return y.is_view() ? at::_unsafe_view(y, y.sizes()) : y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    ExchangeGroup& group = layer_exchange::group_in(context->saved_data.at("group"));
    const std::int64_t parts = context->saved_data.at("parts").toInt();
    return {backward_pass(gradients[0], parts, group), {}, {}};
  }
};

using ToHeads = Exchanged<with_own_heads, with_own_positions>;
using ToPositions = Exchanged<with_own_positions, with_own_heads>;

/// Returns whether a key head of a group goes to one rank only, so that it is sent once.
bool sends_groups(const models::GroupedHeads& heads, int ranks) {
  return heads.queries > 1 && heads.groups % ranks == 0;
}

/// Exchanges the queries of all heads and one key and one value head for each group.
at::Tensor own_heads_of_groups(const at::Tensor& qkv, const models::GroupedHeads& heads,
                               ExchangeGroup& group) {
  const std::int64_t ranks = group.size();
  const auto [groups, queries] = heads;
  const at::Tensor spread = qkv.unflatten(2, {3, groups, queries, -1});
  const std::int64_t of_head = spread.size(5);
  std::vector<at::Tensor> by_rank = {spread.select(2, 0).flatten(2).unflatten(2, {ranks, -1})};
  for (const int part : {1, 2}) {
    by_rank.push_back(spread.select(2, part).select(3, 0).flatten(2).unflatten(2, {ranks, -1}));
  }
  const at::Tensor own = ToHeads::apply(at::cat(by_rank, 3).flatten(2), /*parts=*/1, &group);
  const std::int64_t own_groups = groups / ranks;
  const at::Tensor own_queries = own.narrow(2, 0, own_groups * queries * of_head);
  std::vector<at::Tensor> parts = {own_queries};
  for (const int part : {0, 1}) {
    const std::int64_t first = own_groups * (queries + part) * of_head;
    const at::Tensor of_groups =
        own.narrow(2, first, own_groups * of_head).unflatten(2, {own_groups, 1, of_head});
    parts.push_back(of_groups.expand({-1, -1, -1, queries, -1}).flatten(2));
  }
  return at::cat(parts, 2);
}

at::Tensor heads_attention(const at::Tensor& qkv, const models::GroupedHeads& heads,
                           const SharedPositions& shared) {
  ExchangeGroup& group = shared.group;
  const at::Tensor own_heads = sends_groups(heads, group.size())
                                   ? own_heads_of_groups(qkv, heads, group)
                                   : ToHeads::apply(qkv, /*parts=*/3, &group);
  const at::Tensor mixed = models::causal_attention(own_heads, heads.count() / group.size());
  return ToPositions::apply(mixed, /*parts=*/1, &group);
}

strategies::CommunicationCounts calls_of_heads(const AttentionPass& pass) {
  const std::int64_t keys =
      sends_groups(pass.heads, pass.ranks) ? pass.key_bytes() : pass.output_bytes;
  return {{"all_to_all", {.calls = 2, .payload_bytes = 2 * pass.output_bytes + 2 * keys}}};
}

STRATAGEM_REGISTER(AttentionForm{.name = "heads",
                                 .attention = heads_attention,
                                 .calls = calls_of_heads,
                                 .order = ContextOrder("contiguous"),
                                 .shares_heads = true});

}  // namespace
}  // namespace stratagem::context_parallel
