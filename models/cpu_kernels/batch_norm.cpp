#include "models/cpu_kernels/batch_norm.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <optional>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/kernel_choice.h"
#include "models/cpu_kernels/parallel_batch_norm.h"

namespace stratagem::models {
namespace {

using kernels::ReluMask;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ChannelRows channel_rows(const at::Tensor& x) { return {x.numel() / x.size(1), x.size(1)}; }

// The values of a channel for the backward pass, [channels] each: y = x * scale + shift.
struct Statistics {
  at::Tensor mean;
  at::Tensor inverse_deviation;
  at::Tensor scale;
  at::Tensor shift;
};

template <typename T>
Statistics statistics(const at::Tensor& x, const BatchNormTensors& tensors,
                      const BatchNormOptions& options, const ChannelRows& rows) {
  const ChannelSums sums = parallel_moments(x.const_data_ptr<T>(), rows);
  const at::Tensor all = at::empty({4, rows.channels}, x.options());
  T* const mean = all.mutable_data_ptr<T>();
  T* const inverse = mean + rows.channels;
  T* const scale = inverse + rows.channels;
  T* const shift = scale + rows.channels;
  const T* const weight = tensors.weight.const_data_ptr<T>();
  const T* const bias = tensors.bias.const_data_ptr<T>();
  T* const running_mean = tensors.running_mean.mutable_data_ptr<T>();
  T* const running_var = tensors.running_var.mutable_data_ptr<T>();
  const auto count = static_cast<double>(rows.count);
  const auto moved = [&](T running, double now) {
    return static_cast<T>((1 - options.momentum) * static_cast<double>(running) +
                          options.momentum * now);
  };
  for (std::size_t channel = 0; channel < sums.first.size(); ++channel) {
    const auto c = static_cast<std::ptrdiff_t>(channel);
    const double average = sums.first[channel];
    const double squares = sums.second[channel];
    const double of_deviation = 1 / std::sqrt(squares / count + options.epsilon);
    mean[c] = static_cast<T>(average);
    inverse[c] = static_cast<T>(of_deviation);
    scale[c] = static_cast<T>(static_cast<double>(weight[c]) * of_deviation);
    shift[c] =
        static_cast<T>(static_cast<double>(bias[c]) - average * static_cast<double>(scale[c]));
    running_mean[c] = moved(running_mean[c], average);
    running_var[c] = moved(running_var[c], squares / (count - 1));
  }
  return {all[0], all[1], all[2], all[3]};
}

template <typename T>
void normalise(const at::Tensor& x, const Statistics& of_x, const FusedEpilogue& after,
               const ChannelRows& rows, const at::Tensor& y) {
  const T* const addend = after.addend.defined() ? after.addend.const_data_ptr<T>() : nullptr;
  const kernels::Normalisation<T> work{.x = x.const_data_ptr<T>(),
                                       .addend = addend,
                                       .scale = of_x.scale.const_data_ptr<T>(),
                                       .shift = of_x.shift.const_data_ptr<T>(),
                                       .y = y.mutable_data_ptr<T>(),
                                       .rectify = after.relu};
  parallel_normalise(work, rows);
}

struct Gradients {
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  at::Tensor passed;  // the gradient that passed the ReLU behind a sum
};

// Sums the gradient, and the gradient times (x - mean), over all rows. Fills `passed` if it is
// defined.
template <typename T>
ChannelSums gradient_sums(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& y,
                          const Statistics& of_x, ReluMask rectified, const at::Tensor& passed) {
  const kernels::GradientSums<T> work{
      .gradient = gradient.const_data_ptr<T>(),
      .x = x.const_data_ptr<T>(),
      .output = y.defined() ? y.const_data_ptr<T>() : nullptr,
      .mean = of_x.mean.const_data_ptr<T>(),
      .scale = of_x.scale.const_data_ptr<T>(),
      .shift = of_x.shift.const_data_ptr<T>(),
      .passed = passed.defined() ? passed.mutable_data_ptr<T>() : nullptr,
      .sums = nullptr,
      .products = nullptr,
      .rectified = rectified};
  return parallel_gradient_sums(work, channel_rows(x));
}

template <typename T>
at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& x, const Statistics& of_x,
                          ReluMask rectified, const at::Tensor& factors) {
  const ChannelRows rows = channel_rows(x);
  at::Tensor result = at::empty_like(x);
  const kernels::InputGradient<T> work{.gradient = gradient.const_data_ptr<T>(),
                                       .x = x.const_data_ptr<T>(),
                                       .mean = of_x.mean.const_data_ptr<T>(),
                                       .scale = of_x.scale.const_data_ptr<T>(),
                                       .shift = of_x.shift.const_data_ptr<T>(),
                                       .of_deviation = factors.const_data_ptr<T>(),
                                       .constant = factors.const_data_ptr<T>() + rows.channels,
                                       .result = result.mutable_data_ptr<T>(),
                                       .rectified = rectified};
  parallel_input_gradient(work, rows);
  return result;
}

// `y` is defined if a sum came before the ReLU.
template <typename T>
Gradients gradients_of(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& y,
                       const Statistics& of_x, bool relu) {
  const ChannelRows rows = channel_rows(x);
  Gradients result;
  result.of_weight = at::empty({rows.channels}, x.options());
  result.of_bias = at::empty({rows.channels}, x.options());
  ReluMask rectified = relu ? ReluMask::recomputed : ReluMask::no;
  if (y.defined()) {
    rectified = ReluMask::from_output;
    result.passed = at::empty_like(x);
  }
  const ChannelSums sums = gradient_sums<T>(gradient, x, y, of_x, rectified, result.passed);
  const at::Tensor factors = at::empty({2, rows.channels}, x.options());
  T* const of_deviation = factors.mutable_data_ptr<T>();
  T* const constant = of_deviation + rows.channels;
  T* const of_weight = result.of_weight.mutable_data_ptr<T>();
  T* const of_bias = result.of_bias.mutable_data_ptr<T>();
  const T* const inverse = of_x.inverse_deviation.const_data_ptr<T>();
  const T* const scale = of_x.scale.const_data_ptr<T>();
  const auto count = static_cast<double>(rows.count);
  for (std::size_t channel = 0; channel < sums.first.size(); ++channel) {
    const auto c = static_cast<std::ptrdiff_t>(channel);
    const auto of_unit = static_cast<double>(inverse[c]);
    const auto factor = static_cast<double>(scale[c]);
    const double product = sums.second[channel];
    of_weight[c] = static_cast<T>(product * of_unit);
    of_bias[c] = static_cast<T>(sums.first[channel]);
    of_deviation[c] = static_cast<T>(-factor * of_unit * of_unit * product / count);
    constant[c] = static_cast<T>(-factor * sums.first[channel] / count);
  }
  // The gradient that passed a sum's ReLU is already masked.
  result.of_input = y.defined() ? input_gradient<T>(result.passed, x, of_x, ReluMask::no, factors)
                                : input_gradient<T>(gradient, x, of_x, rectified, factors);
  return result;
}

class BatchNormFunction : public torch::autograd::Function<BatchNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& addend,
                            const BatchNormTensors& tensors, const BatchNormOptions& options,
                            bool relu) {
    const ChannelRows rows = channel_rows(x);
    const at::Tensor y = at::empty_like(x);
    const FusedEpilogue after{addend.value_or(at::Tensor()), relu};
    Statistics of_x;
    if (x.scalar_type() == at::kFloat) {
      of_x = statistics<float>(x, tensors, options, rows);
      normalise<float>(x, of_x, after, rows, y);
    } else {
      of_x = statistics<double>(x, tensors, options, rows);
      normalise<double>(x, of_x, after, rows, y);
    }
    const bool needs_output = relu && addend.has_value();
    context->save_for_backward({x, of_x.mean, of_x.inverse_deviation, of_x.scale, of_x.shift,
                                needs_output ? y : at::Tensor(), weight, bias});
    context->saved_data["relu"] = relu;
    context->saved_data["adds"] = addend.has_value();
    save_deferred_weight_gradients(*context);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "batch_norm: no second derivative; use ATen's kernel by ReferenceKernelsGuard");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const Statistics of_x{saved[1], saved[2], saved[3], saved[4]};
    const bool relu = context->saved_data.at("relu").toBool();
    const at::Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const Gradients found = x.scalar_type() == at::kFloat
                                ? gradients_of<float>(gradient, x, saved[5], of_x, relu)
                                : gradients_of<double>(gradient, x, saved[5], of_x, relu);
    variable_list result(7);
    result[0] = found.of_input;
    if (context->saved_data.at("adds").toBool()) result[3] = relu ? found.passed : gradient;
    if (const auto deferred = saved_deferred_weight_gradients(*context)) {
      // The input's gradient needs both sums anyway; they are kept until W.
      deferred->defer(saved[6], [of_weight = found.of_weight] { return of_weight; });
      deferred->defer(saved[7], [of_bias = found.of_bias] { return of_bias; });
      return result;
    }
    result[1] = found.of_weight;
    result[2] = found.of_bias;
    return result;
  }
};

// Returns whether x is rows of floats that ATen would not broadcast, convert or refuse.
bool takes_own(const at::Tensor& x, const BatchNormTensors& tensors, const at::Tensor& addend,
               bool training) {
  const auto type = x.scalar_type();
  if (!training || x.dim() != 4 || x.numel() <= x.size(1) ||
      !may_take_own_kernels(x, "batch normalisation") ||
      (type != at::kFloat && type != at::kDouble)) {
    return false;
  }
  for (const at::Tensor& each :
       {tensors.weight, tensors.bias, tensors.running_mean, tensors.running_var}) {
    if (each.scalar_type() != type || each.numel() != x.size(1) || !each.is_contiguous()) {
      return false;
    }
  }
  return !addend.defined() || (addend.sizes() == x.sizes() && addend.scalar_type() == type);
}

}  // namespace

namespace {

// Keeps float32 statistics beside weights of fewer bits, whose gradients are not deferred.
at::Tensor mixed_batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                            const BatchNormOptions& options) {
  const at::ScalarType dtype = tensors.running_mean.scalar_type();
  return at::batch_norm(x, tensors.weight.to(dtype), tensors.bias.to(dtype), tensors.running_mean,
                        tensors.running_var, options.training, options.momentum, options.epsilon,
                        at::globalContext().userEnabledCuDNN());
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                      const BatchNormOptions& options, const FusedEpilogue& after) {
  if (takes_own(x, tensors, after.addend, options.training)) {
    std::optional<at::Tensor> addend;
    if (after.addend.defined()) addend = after.addend.contiguous(at::MemoryFormat::ChannelsLast);
    return BatchNormFunction::apply(x, tensors.weight, tensors.bias, addend, tensors, options,
                                    after.relu);
  }
  at::Tensor y = tensors.weight.scalar_type() == tensors.running_mean.scalar_type()
                     ? plain_batch_norm(x, tensors, options)
                     : mixed_batch_norm(x, tensors, options);
  if (after.addend.defined()) y.add_(after.addend);
  return after.relu ? at::relu_(y) : y;
}

}  // namespace stratagem::models
