#include "strategies/tensor_parallel/parallel_linear.h"

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/linear.h"
#include "models/cpu_kernels/remade_inputs.h"
#include "strategies/layer_exchange/group_capsule.h"
#include "strategies/tensor_parallel/mappings.h"

namespace stratagem::tensor_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A layer's input, kept for its weight's gradient: whole, or as this rank's part of the sequence,
/// which is gathered again. The whole would take as much memory as without parts.
class KeptInput {
 public:
  /// `kept` gives the input, once. `gathers`: the group with the other parts; null if it is whole.
  KeptInput(std::function<at::Tensor()> kept, layer_exchange::ExchangeGroup* gathers)
      : kept_(std::move(kept)), gathers_(gathers) {}

  bool gathers() const { return gathers_ != nullptr; }
  void begin() { gather_ = gathers_->all_gather(kept_(), sequence_dimension); }

  /// Returns the whole, [positions, features]; once.
  at::Tensor rows() {
    if (!gathers()) return kept_().flatten(0, -2);
    if (!gather_) begin();
    return std::exchange(gather_, std::nullopt)->wait().flatten(0, -2);
  }

 private:
  std::function<at::Tensor()> kept_;
  layer_exchange::ExchangeGroup* gathers_;
  std::optional<layer_exchange::PendingCollective> gather_;
};

/// Returns `rows` [positions, features] as [n, ..., features]; `like` is [n, ..., any].
at::Tensor unflattened(const at::Tensor& rows, const at::Tensor& like) {
  std::vector<std::int64_t> shape = like.sizes().vec();
  shape.back() = rows.size(1);
  return at::_unsafe_view(rows, shape);
}

/// y = [gathered] x W^T. The gradient of x is summed over the ranks while that of W is computed. By
/// sequence x is gathered again while its gradient is computed, or in W's own action if that is
/// deferred, so that nothing holds the whole x until then.
class ColumnFunction : public torch::autograd::Function<ColumnFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            layer_exchange::ExchangeGroup* group, bool by_sequence) {
    const at::Tensor whole = by_sequence ? group->all_gather(x, sequence_dimension).wait() : x;
    const at::Tensor kept =
        by_sequence && group->options().keep_gathered ? whole : models::kept_input(*context, x);
    context->save_for_backward({kept, weight});
    context->saved_data["group"] = layer_exchange::capsule_of(*group);
    context->saved_data["by_sequence"] = by_sequence;
    models::save_deferred_weight_gradients(*context);
    return unflattened(models::linear_product(whole.flatten(0, -2), weight, {}), whole);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    layer_exchange::ExchangeGroup& group =
        layer_exchange::group_in(context->saved_data.at("group"));
    const bool overlap = group.options().overlap;
    const bool keep_gathered = group.options().keep_gathered;
    const bool by_sequence = context->saved_data.at("by_sequence").toBool();
    const at::Tensor& weight = saved[1];
    const at::Tensor gradient = gradients[0].contiguous().flatten(0, -2);
    const auto input = std::make_shared<KeptInput>(
        models::input_of(*context, saved[0]), by_sequence && !keep_gathered ? &group : nullptr);
    const auto weight_gradient = [weight, input, gradient] {
      return models::accumulated_weight_gradient(weight, input->rows(), gradient);
    };
    const bool begins = input->gathers() && overlap;
    const auto deferred = models::saved_deferred_weight_gradients(*context);
    if (begins && !deferred) input->begin();
    variable_list result(4);
    std::optional<layer_exchange::PendingCollective> collective;
    if (context->needs_input_grad(0)) {
      const at::Tensor own =
          unflattened(models::linear_input_gradient(gradient, weight), gradients[0]);
      collective =
          by_sequence ? group.reduce_scatter(own, sequence_dimension) : group.all_reduce(own);
      if (!overlap) result[0] = collective->wait();
    }
    if (deferred) {
      std::function<void()> begin;
      if (begins) begin = [input] { input->begin(); };
      deferred->defer(weight, weight_gradient, begin);
    } else {
      result[1] = weight_gradient();
    }
    if (collective && overlap) result[0] = collective->wait();
    return result;
  }
};

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(std::string name, at::Tensor weight, at::Tensor bias,
                                           layer_exchange::ExchangeGroup& group,
                                           const ColumnOptions& options)
    : LinearLayer(std::move(name), std::move(weight), std::move(bias)),
      group_(group),
      options_(options) {}

at::Tensor ColumnParallelLinear::forward(const at::Tensor& input) {
  at::Tensor y =
      ColumnFunction::apply(input, weight(), &group_, options_.layout == Layout::sequence);
  if (bias().defined()) y = models::add_bias(y, bias());
  return options_.gather_output ? all_gather_whole_gradient(y, group_, -1) : y;
}

RowParallelLinear::RowParallelLinear(std::string name, at::Tensor weight, at::Tensor bias,
                                     layer_exchange::ExchangeGroup& group, Layout layout)
    : LinearLayer(std::move(name), std::move(weight), std::move(bias)),
      group_(group),
      layout_(layout) {}

at::Tensor RowParallelLinear::forward(const at::Tensor& input) {
  const at::Tensor partial_sum = models::linear(input, weight(), {});
  const at::Tensor y = layout_ == Layout::sequence
                           ? scatter_to_ranks(partial_sum, group_, sequence_dimension)
                           : reduce_from_ranks(partial_sum, group_);
  return bias().defined() ? models::add_bias(y, bias()) : y;
}

}  // namespace stratagem::tensor_parallel
