#include "strategies/tensor_parallel/parallel_linear.h"

#include <ATen/ATen.h>

#include <utility>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/linear.h"
#include "strategies/tensor_parallel/group_capsule.h"
#include "strategies/tensor_parallel/mappings.h"

namespace stratagem::tensor_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// y = [gathered] x W^T; the gradient of x is all-reduced while that of W is computed.
class ColumnFunction : public torch::autograd::Function<ColumnFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            TensorGroup* group, bool by_sequence) {
    const at::Tensor whole = by_sequence ? group->all_gather(x, sequence_dimension).wait() : x;
    context->save_for_backward({whole, weight});
    context->saved_data["group"] = capsule_of(*group);
    context->saved_data["by_sequence"] = by_sequence;
    models::save_deferred_weight_gradients(*context);
    const at::Tensor y = models::linear_product(whole.flatten(0, -2), weight, {});
    std::vector<std::int64_t> shape = whole.sizes().vec();
    shape.back() = weight.size(0);
    return at::_unsafe_view(y, shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    TensorGroup& group = group_in(context->saved_data.at("group"));
    const bool by_sequence = context->saved_data.at("by_sequence").toBool();
    const at::Tensor& weight = saved[1];
    const at::Tensor rows = saved[0].flatten(0, -2);
    const at::Tensor gradient = gradients[0].contiguous().flatten(0, -2);
    variable_list result(4);
    std::optional<PendingCollective> collective;
    if (context->needs_input_grad(0)) {
      const at::Tensor own = models::linear_input_gradient(gradient, weight).view(saved[0].sizes());
      collective =
          by_sequence ? group.reduce_scatter(own, sequence_dimension) : group.all_reduce(own);
      if (!group.overlap()) result[0] = collective->wait();
    }
    if (const auto deferred = models::saved_deferred_weight_gradients(*context)) {
      deferred->defer(weight, [weight, rows, gradient] {
        return models::accumulated_weight_gradient(weight, rows, gradient);
      });
    } else {
      result[1] = models::accumulated_weight_gradient(weight, rows, gradient);
    }
    if (collective && group.overlap()) result[0] = collective->wait();
    return result;
  }
};

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(std::string name, at::Tensor weight, at::Tensor bias,
                                           TensorGroup& group, const ColumnOptions& options)
    : LinearLayer(std::move(name), std::move(weight), std::move(bias)),
      group_(group),
      options_(options) {}

at::Tensor ColumnParallelLinear::forward(const at::Tensor& input) {
  at::Tensor y =
      ColumnFunction::apply(input, weight(), &group_, options_.layout == Layout::sequence);
  if (bias().defined()) y = models::add_bias(y, bias());
  return options_.gather_output ? all_gather_whole_gradient(y, group_, -1) : y;
}

Communication ColumnParallelLinear::communication(const LayerInput& work) const {
  Communication calls;
  const std::int64_t bytes = work.positions * weight().size(1) * work.element_bytes;
  if (options_.layout == Layout::sequence) add_call(calls, "all_gather", bytes / group_.size());
  if (work.input_needs_gradient) {
    add_call(calls, options_.layout == Layout::sequence ? "reduce_scatter" : "all_reduce", bytes);
  }
  if (options_.gather_output) {
    add_call(calls, "all_gather", work.positions * weight().size(0) * work.element_bytes);
  }
  return calls;
}

RowParallelLinear::RowParallelLinear(std::string name, at::Tensor weight, at::Tensor bias,
                                     TensorGroup& group, Layout layout)
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

Communication RowParallelLinear::communication(const LayerInput& work) const {
  return sum_communication(work.positions * weight().size(0) * work.element_bytes, layout_,
                           group_.size());
}

}  // namespace stratagem::tensor_parallel
