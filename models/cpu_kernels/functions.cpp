#include "models/cpu_kernels/functions.h"

#include <ATen/ATen.h>

#include <array>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/gradient_accumulation_fusion.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kLayerNormEpsilon = 1e-5;

// Returns [entries, features], or undefined after accumulating the rows (see
// gradient_accumulation_fusion.h).
at::Tensor embedding_gradient(const at::Tensor& weight, const at::Tensor& indices,
                              const at::Tensor& gradient) {
  if (at::Tensor sum = gradient_to_accumulate_into(weight); sum.defined() && sum.is_cpu()) {
    sum.index_add_(0, indices.flatten(), gradient.reshape({-1, gradient.size(-1)}));
    return {};
  }
  return at::embedding_dense_backward(gradient, indices, weight.size(0), -1, false);
}

class Embedding : public torch::autograd::Function<Embedding> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight,
                            const at::Tensor& indices) {
    context->save_for_backward({weight, indices});
    save_deferred_weight_gradients(*context);
    return at::embedding(weight, indices);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto compute = [weight = saved[0], indices = saved[1], gradient = gradients[0]] {
      return embedding_gradient(weight, indices, gradient);
    };
    if (const auto deferred = saved_deferred_weight_gradients(*context)) {
      deferred->defer(saved[0], compute);
      return variable_list(2);
    }
    return {compute(), {}};
  }
};

class SplitLayerNorm : public torch::autograd::Function<SplitLayerNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    auto [y, mean, deviation] =
        at::native_layer_norm(x, weight.sizes(), weight, bias, kLayerNormEpsilon);
    context->save_for_backward({x, weight, bias, mean, deviation});
    save_deferred_weight_gradients(*context);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto derivative = [gradient = gradients[0], saved](const at::Tensor& weight,
                                                             std::array<bool, 3> wanted) {
      return at::native_layer_norm_backward(gradient, saved[0], saved[1].sizes(), saved[3],
                                            saved[4], weight, saved[2], wanted);
    };
    const DeferredWeightGradientsPointer deferred = saved_deferred_weight_gradients(*context);
    // The result ignores the weight, whose memory may be freed by then (sharded parameters).
    deferred->defer(saved[1], [derivative, weight = saved[1]] {
      return std::get<1>(derivative(at::ones_like(weight), {false, true, false}));
    });
    deferred->defer(saved[2], [gradient = gradients[0]] { return gradient.flatten(0, -2).sum(0); });
    return {std::get<0>(derivative(saved[1], {true, false, false})), {}, {}};
  }
};

class SplitBias : public torch::autograd::Function<SplitBias> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& bias) {
    context->save_for_backward({bias});
    save_deferred_weight_gradients(*context);
    return x + bias;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    saved_deferred_weight_gradients(*context)->defer(
        context->get_saved_variables()[0],
        [gradient = gradients[0]] { return gradient.flatten(0, -2).sum(0); });
    return {gradients[0], {}};
  }
};

class SplitConvolution : public torch::autograd::Function<SplitConvolution> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            std::int64_t stride, std::int64_t padding) {
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    save_deferred_weight_gradients(*context);
    return at::conv2d(x, weight, {}, {stride, stride}, {padding, padding});
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::int64_t stride = context->saved_data.at("stride").toInt();
    const std::int64_t padding = context->saved_data.at("padding").toInt();
    const auto derivative = [gradient = gradients[0], saved, stride,
                             padding](std::array<bool, 3> wanted) {
      return at::convolution_backward(gradient, saved[0], saved[1], std::nullopt, {stride, stride},
                                      {padding, padding}, {1, 1}, false, {0, 0}, 1, wanted);
    };
    saved_deferred_weight_gradients(*context)->defer(saved[1], [derivative] {
      return std::get<1>(derivative({false, true, false}));
    });
    if (!context->needs_input_grad(0)) return variable_list(4);
    return {std::get<0>(derivative({true, false, false})), {}, {}, {}};
  }
};

// The input's gradient needs both parameters' gradients anyway, so they are kept until W.
class SplitBatchNorm : public torch::autograd::Function<SplitBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& running_mean,
                            const at::Tensor& running_var, double momentum, double epsilon) {
    auto [y, mean, deviation] = at::native_batch_norm(x, weight, bias, running_mean, running_var,
                                                      /*training=*/true, momentum, epsilon);
    context->save_for_backward({x, weight, bias, mean, deviation});
    context->saved_data["epsilon"] = epsilon;
    save_deferred_weight_gradients(*context);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    auto [of_input, of_weight, of_bias] = at::native_batch_norm_backward(
        gradients[0], saved[0], saved[1], {}, {}, saved[3], saved[4], /*train=*/true,
        context->saved_data.at("epsilon").toDouble(), {true, true, true});
    const DeferredWeightGradientsPointer deferred = saved_deferred_weight_gradients(*context);
    deferred->defer(saved[1], [gradient = of_weight] { return gradient; });
    deferred->defer(saved[2], [gradient = of_bias] { return gradient; });
    variable_list result(7);
    result[0] = of_input;
    return result;
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices) {
  if (uses_reference_kernels() && !current_deferred_weight_gradients()) {
    return at::embedding(weight, indices);
  }
  return Embedding::apply(weight, indices);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (current_deferred_weight_gradients()) return SplitLayerNorm::apply(x, weight, bias);
  return at::layer_norm(x, weight.sizes(), weight, bias, kLayerNormEpsilon);
}

at::Tensor add_bias(at::Tensor x, const at::Tensor& bias) {
  if (current_deferred_weight_gradients()) return SplitBias::apply(x, bias);
  return x.add_(bias);
}

at::Tensor plain_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const ConvolutionStride& options) {
  const auto [stride, padding] = options;
  if (current_deferred_weight_gradients())
    return SplitConvolution::apply(x, weight, stride, padding);
  return at::conv2d(x, weight, {}, {stride, stride}, {padding, padding});
}

at::Tensor plain_batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                            const BatchNormOptions& options) {
  const auto& [weight, bias, mean, variance] = tensors;
  const auto [training, momentum, epsilon] = options;
  if (training && current_deferred_weight_gradients()) {
    return SplitBatchNorm::apply(x, weight, bias, mean, variance, momentum, epsilon);
  }
  return at::batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon,
                        at::globalContext().userEnabledCuDNN());
}

}  // namespace stratagem::models
