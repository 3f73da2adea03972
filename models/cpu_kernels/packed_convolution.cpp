#include "models/cpu_kernels/packed_convolution.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/gradient_accumulation_fusion.h"
#include "models/cpu_kernels/linear.h"

namespace stratagem::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The sizes of weights from which on ATen's copies of the weight's gradient cost more than its
// kernel gains: for a convolution that gathers its input, and for a 1x1, which gathers nothing.
constexpr std::int64_t kGatheredWeights = 1 << 20;
constexpr std::int64_t kPointwiseWeights = 1 << 19;

using Scalars = c10::List<std::optional<at::Scalar>>;

at::Tensor output(const at::Tensor& x, const at::Tensor& weight, const ConvolutionStride& options,
                  PackedWeights& packed) {
  const std::array padding = {options.padding, options.padding};
  const std::array stride = {options.stride, options.stride};
  const at::Tensor& kept = packed.for_forward(weight, x.sizes(), options);
  if (!PackedWeights::is_packed(weight)) return at::conv2d(x, kept, {}, stride, padding);
  using Signature =
      at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                 at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t, std::string_view,
                 Scalars, std::optional<std::string_view>);
  static const auto convolve = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("mkldnn::_convolution_pointwise", "")
                                   .typed<Signature>();
  return convolve.call(x, kept, std::nullopt, padding, stride, {1, 1}, 1, "none", Scalars(), "");
}

std::array<at::Tensor, 2> atens_gradients(const at::Tensor& x, const at::Tensor& gradient,
                                          const at::Tensor& weight,
                                          const ConvolutionStride& options,
                                          std::array<bool, 2> wanted) {
  const auto [stride, padding] = options;
  auto [of_input, of_weight, _] = at::convolution_backward(
      gradient, x, weight, std::nullopt, {stride, stride}, {padding, padding}, {1, 1},
      /*transposed=*/false, {0, 0}, /*groups=*/1, {wanted[0], wanted[1], false});
  return {of_input, of_weight};
}

at::Tensor input_gradient(const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& weight,
                          const ConvolutionStride& options, PackedWeights& packed) {
  const auto left_over = [&](std::int64_t dimension) {
    return x.size(dimension) - (gradient.size(dimension) - 1) * options.stride +
           2 * options.padding - weight.size(dimension);
  };
  const std::array output_padding = {left_over(2), left_over(3)};
  const at::Tensor& kept = packed.for_backward(weight, gradient.sizes(), output_padding, options);
  if (!PackedWeights::is_packed(weight)) {
    return atens_gradients(x, gradient, kept, options, {true, false})[0];
  }
  const std::array padding = {options.padding, options.padding};
  const std::array stride = {options.stride, options.stride};
  using Signature =
      at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                 at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t,
                 std::string_view, Scalars, std::optional<std::string_view>);
  static const auto convolve =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_convolution_transpose_pointwise", "")
          .typed<Signature>();
  return convolve.call(gradient, kept, std::nullopt, padding, output_padding, stride, {1, 1}, 1,
                       "none", Scalars(), "");
}

at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                           const at::Tensor& weight, const ConvolutionStride& options,
                           const PackedWeights& packed) {
  const std::int64_t enough = weight.size(2) == 1 ? kPointwiseWeights : kGatheredWeights;
  // A product adds to the earlier micro-batches; ATen's gradient would need another pass.
  if (packed.full_size(weight) >= enough || gradient_to_accumulate_into(weight).defined()) {
    return weight_gradient_by_product(x, gradient, weight, options);
  }
  return atens_gradients(x, gradient, weight, options, {false, true})[1];
}

// Returns the inputs of each position of the output: [n * h' * w', k * k * c].
at::Tensor gathered_rows(const at::Tensor& x, const at::Tensor& gradient, std::int64_t kernel,
                         const ConvolutionStride& options) {
  const auto [stride, padding] = options;
  const at::Tensor pixels = x.permute({0, 2, 3, 1}).contiguous();
  const at::Tensor padded =
      padding == 0 ? pixels
                   : at::constant_pad_nd(pixels, {0, 0, padding, padding, padding, padding});
  const std::int64_t c = x.size(1);
  const std::int64_t row = padded.stride(1);
  return padded
      .as_strided({x.size(0), gradient.size(2), gradient.size(3), kernel, kernel, c},
                  {padded.stride(0), stride * row, stride * c, row, c, 1})
      .reshape({-1, kernel * kernel * c});
}

class PackedConvolution : public torch::autograd::Function<PackedConvolution> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const ConvolutionStride& options, const PackedWeightsPointer& packed) {
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = options.stride;
    context->saved_data["padding"] = options.padding;
    context->saved_data["packed"] = c10::IValue::make_capsule(packed);
    save_deferred_weight_gradients(*context);
    return output(x, weight, options, *packed);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const ConvolutionStride options{context->saved_data.at("stride").toInt(),
                                    context->saved_data.at("padding").toInt()};
    const auto packed = c10::static_intrusive_pointer_cast<PackedWeights>(
        context->saved_data.at("packed").toCapsule());
    variable_list result(4);
    if (context->needs_input_grad(0)) {
      result[0] = input_gradient(x, gradient, weight, options, *packed);
    }
    if (const auto deferred = saved_deferred_weight_gradients(*context)) {
      deferred->defer(weight, [x, gradient, weight, options, packed] {
        return weight_gradient(x, gradient, weight, options, *packed);
      });
    } else if (context->needs_input_grad(1)) {
      result[1] = weight_gradient(x, gradient, weight, options, *packed);
    }
    return result;
  }
};

}  // namespace

at::Tensor weight_gradient_by_product(const at::Tensor& x, const at::Tensor& gradient,
                                      const at::Tensor& weight, const ConvolutionStride& options) {
  const std::int64_t kernel = weight.size(2);
  const at::Tensor rows = gathered_rows(x, gradient, kernel, options);
  const at::Tensor gradient_rows =
      gradient.permute({0, 2, 3, 1}).reshape({rows.size(0), weight.size(0)});
  if (accumulate_into_gradient(weight, gradient_rows, rows)) return {};
  return linear_product(gradient_rows.t().contiguous(), rows.t(), {})
      .view({weight.size(0), kernel, kernel, weight.size(1)})
      .permute({0, 3, 1, 2});
}

at::Tensor packed_convolution(const at::Tensor& x, const at::Tensor& weight,
                              const ConvolutionStride& options, PackedWeightsPointer packed) {
  if (!packed) packed = c10::make_intrusive<PackedWeights>();
  return PackedConvolution::apply(x, weight, options, packed);
}

}  // namespace stratagem::models
