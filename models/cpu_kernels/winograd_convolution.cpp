#include "models/cpu_kernels/winograd_convolution.h"

#include <ATen/ATen.h>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/gradient_accumulation_fusion.h"
#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/kernels/winograd_kernels.h"
#include "models/cpu_kernels/parallel_rows.h"

namespace stratagem::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kFormat = at::MemoryFormat::ChannelsLast;

kernels::WinogradShape shape_of(const at::Tensor& x, std::int64_t out) {
  return {x.size(0), x.size(2), x.size(3), x.size(1), out};
}

template <typename T>
at::Tensor transformed(const at::Tensor& weight, bool backwards) {
  constexpr std::int64_t panel = kernels::winograd_channels<T>;
  const at::Tensor dense = weight.detach().contiguous(kFormat);
  const std::int64_t out = weight.size(0);
  const std::int64_t in = weight.size(1);
  at::Tensor result = at::empty({kernels::winograd_places, out * in}, weight.options());
  const kernels::WinogradWeights<T> work{.weight = dense.const_data_ptr<T>(),
                                         .in = in,
                                         .out = out,
                                         .backwards = backwards,
                                         .transformed = result.mutable_data_ptr<T>()};
  const std::int64_t panels = (backwards ? in : out) / panel;
  for_each_part(parallel_parts(panels, result.numel() / panels), panels,
                [&](std::int64_t /*part*/, std::int64_t first, std::int64_t count) {
                  kernels::best_kernels<kernels::WinogradKernels<T>>().weights(work, first * panel,
                                                                               count * panel);
                });
  return result;
}

template <typename T>
at::Tensor convolved(const at::Tensor& x, const at::Tensor& weights, std::int64_t out) {
  const kernels::WinogradShape shape = shape_of(x, out);
  at::Tensor y =
      at::empty({x.size(0), out, x.size(2), x.size(3)}, x.options().memory_format(kFormat));
  const std::int64_t tiles = kernels::winograd_tiles(shape);
  const std::int64_t parts = parallel_parts(tiles, shape.in * out);
  // The device's thread allocates, because ATen's threads have no memory account.
  const at::Tensor scratch = at::empty({parts, kernels::winograd_scratch(shape)}, x.options());
  kernels::WinogradConvolution<T> work{.x = x.const_data_ptr<T>(),
                                       .transformed = weights.const_data_ptr<T>(),
                                       .y = y.mutable_data_ptr<T>(),
                                       .shape = shape,
                                       .scratch = scratch.mutable_data_ptr<T>()};
  for_each_part(parts, tiles, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    kernels::WinogradConvolution<T> of_part = work;
    of_part.scratch += part * scratch.size(1);
    kernels::best_kernels<kernels::WinogradKernels<T>>().convolve(of_part, first, count);
  });
  return y;
}

template <typename T>
void compute_weight_gradient(const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& sum,
                             bool added) {
  constexpr std::int64_t panel = kernels::winograd_channels<T>;
  const kernels::WinogradShape shape = shape_of(x, gradient.size(1));
  const std::int64_t panels = shape.out / panel;
  const std::int64_t parts =
      parallel_parts(panels, panel * shape.in * kernels::winograd_tiles(shape));
  const std::int64_t most = (panels + parts - 1) / parts * panel;
  const at::Tensor scratch =
      at::empty({parts, kernels::winograd_gradient_scratch<T>(shape, most)}, x.options());
  const kernels::WinogradGradient<T> work{.x = x.const_data_ptr<T>(),
                                          .gradient = gradient.const_data_ptr<T>(),
                                          .sum = sum.mutable_data_ptr<T>(),
                                          .shape = shape,
                                          .added = added,
                                          .scratch = scratch.mutable_data_ptr<T>()};
  for_each_part(parts, panels, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    kernels::WinogradGradient<T> of_part = work;
    of_part.scratch += part * scratch.size(1);
    kernels::best_kernels<kernels::WinogradKernels<T>>().gradient(of_part, first * panel,
                                                                  count * panel);
  });
}

at::Tensor transformed_weights(const at::Tensor& weight, bool backwards) {
  return weight.scalar_type() == at::kFloat ? transformed<float>(weight, backwards)
                                            : transformed<double>(weight, backwards);
}

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weights, std::int64_t out) {
  return x.scalar_type() == at::kFloat ? convolved<float>(x, weights, out)
                                       : convolved<double>(x, weights, out);
}

// Returns undefined after adding the gradient to the weight's existing one.
at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                           const at::Tensor& weight) {
  const at::Tensor before = gradient_to_accumulate_into(weight);
  const bool added =
      before.defined() && before.scalar_type() == x.scalar_type() && before.is_contiguous(kFormat);
  const at::Tensor sum =
      added ? before : at::empty(weight.sizes(), x.options().memory_format(kFormat));
  if (x.scalar_type() == at::kFloat) {
    compute_weight_gradient<float>(x, gradient, sum, added);
  } else {
    compute_weight_gradient<double>(x, gradient, sum, added);
  }
  return added ? at::Tensor() : sum;
}

class WinogradFunction : public torch::autograd::Function<WinogradFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const PackedWeightsPointer& packed) {
    context->save_for_backward({x, weight});
    context->saved_data["packed"] = c10::IValue::make_capsule(packed);
    save_deferred_weight_gradients(*context);
    const at::Tensor& kept =
        packed->transformed(weight, false, [&] { return transformed_weights(weight, false); });
    return convolve(x, kept, weight.size(0));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor gradient = gradients[0].contiguous(kFormat);
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      const auto packed = c10::static_intrusive_pointer_cast<PackedWeights>(
          context->saved_data.at("packed").toCapsule());
      const at::Tensor& kept =
          packed->transformed(weight, true, [&] { return transformed_weights(weight, true); });
      result[0] = convolve(gradient, kept, weight.size(1));
    }
    if (const auto deferred = saved_deferred_weight_gradients(*context)) {
      deferred->defer(weight,
                      [x, gradient, weight] { return weight_gradient(x, gradient, weight); });
    } else if (context->needs_input_grad(1)) {
      result[1] = weight_gradient(x, gradient, weight);
    }
    return result;
  }
};

}  // namespace

bool winograd_applies(const at::Tensor& x, const at::Tensor& weight,
                      const ConvolutionStride& options) {
  const at::ScalarType type = x.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || weight.scalar_type() != type) return false;
  if (weight.size(2) != 3 || weight.size(3) != 3 || options.stride != 1 || options.padding != 1) {
    return false;
  }
  if (x.size(1) != weight.size(1) || x.numel() == 0) return false;  // ATen handles or rejects it
  if (x.size(2) == 1 || x.size(3) == 1) return false;  // most of a tile would be padding
  const std::int64_t panel =
      type == at::kFloat ? kernels::winograd_channels<float> : kernels::winograd_channels<double>;
  return weight.size(0) % panel == 0 && weight.size(1) % panel == 0;
}

at::Tensor winograd_convolution(const at::Tensor& x, const at::Tensor& weight,
                                PackedWeightsPointer packed) {
  if (!packed) packed = c10::make_intrusive<PackedWeights>();
  return WinogradFunction::apply(x, weight, packed);
}

}  // namespace stratagem::models
