// Attention whose heads are shared by the ranks that share a sequence: an all-to-all turns parts of
// the positions into parts of the heads, and another one turns the result back (Jacobs et al. 2023,
// "DeepSpeed Ulysses", section 3).
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/cpu_kernels/attention.h"
#include "strategies/context_parallel/attention_form.h"
#include "strategies/layer_exchange/group_capsule.h"

namespace stratagem::context_parallel {
namespace {

using layer_exchange::ExchangeGroup;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Exchange = at::Tensor (*)(const at::Tensor&, std::int64_t, ExchangeGroup&);

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
template <Exchange forward_pass, Exchange backward_pass>
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

at::Tensor heads_attention(const at::Tensor& qkv, std::int64_t heads,
                           const SharedPositions& shared) {
  ExchangeGroup& group = shared.group;
  const at::Tensor own_heads =
      Exchanged<with_own_heads, with_own_positions>::apply(qkv, /*parts=*/3, &group);
  const at::Tensor mixed = models::causal_attention(own_heads, heads / group.size());
  return Exchanged<with_own_positions, with_own_heads>::apply(mixed, /*parts=*/1, &group);
}

strategies::CommunicationCounts calls_of_heads(const AttentionPass& pass) {
  return {{"all_to_all", {.calls = 2, .payload_bytes = 4 * pass.output_bytes}}};
}

STRATAGEM_REGISTER(AttentionForm{.name = "heads",
                                 .attention = heads_attention,
                                 .calls = calls_of_heads,
                                 .order = ContextOrder("contiguous"),
                                 .shares_heads = true});

}  // namespace
}  // namespace stratagem::context_parallel
