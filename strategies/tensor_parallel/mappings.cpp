#include "strategies/tensor_parallel/mappings.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "strategies/backends/memory_accounting.h"
#include "strategies/layer_exchange/group_capsule.h"

namespace stratagem::tensor_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Pass = at::Tensor (*)(const at::Tensor&, layer_exchange::ExchangeGroup&, std::int64_t);

at::Tensor nothing(const at::Tensor& x, layer_exchange::ExchangeGroup& /*group*/,
                   std::int64_t /*dimension*/) {
  return x;
}
at::Tensor all_reduced(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                       std::int64_t /*dimension*/) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  return group.all_reduce(x.clone(at::MemoryFormat::Contiguous)).wait();
}
at::Tensor gathered(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                    std::int64_t dimension) {
  return group.all_gather(x, dimension).wait();
}
at::Tensor scattered(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                     std::int64_t dimension) {
  return group.reduce_scatter(x, dimension).wait();
}
at::Tensor own_part(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                    std::int64_t dimension) {
  return group.own_part(x, dimension).contiguous();
}

template <Pass forward_pass, Pass backward_pass>
class Conjugate : public torch::autograd::Function<Conjugate<forward_pass, backward_pass>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            layer_exchange::ExchangeGroup* group, std::int64_t dimension) {
    context->saved_data["group"] = layer_exchange::capsule_of(*group);
    context->saved_data["dimension"] = dimension;
    const at::Tensor y = forward_pass(x, *group, dimension);
    // The next layer may write in place, which autograd refuses for a view made here.
    return y.is_view() ? at::_unsafe_view(y, y.sizes()) : y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    layer_exchange::ExchangeGroup& group =
        layer_exchange::group_in(context->saved_data.at("group"));
    const std::int64_t dimension = context->saved_data.at("dimension").toInt();
    return {backward_pass(gradients[0], group, dimension), {}, {}};
  }
};

}  // namespace

at::Tensor reduce_from_ranks(const at::Tensor& x, layer_exchange::ExchangeGroup& group) {
  return Conjugate<all_reduced, nothing>::apply(x, &group, 0);
}

at::Tensor scatter_to_ranks(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                            std::int64_t dimension) {
  return Conjugate<scattered, gathered>::apply(x, &group, dimension);
}

at::Tensor all_gather_whole_gradient(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                                     std::int64_t dimension) {
  return Conjugate<gathered, own_part>::apply(x, &group, dimension);
}

}  // namespace stratagem::tensor_parallel
