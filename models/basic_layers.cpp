#include "models/basic_layers.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/cpu_kernels/convolution.h"
#include "models/cpu_kernels/linear.h"

namespace stratagem::models {
namespace {

void require_image(const Layer& layer, const Shape& input, std::int64_t channels) {
  if (input.size() == 4 && (channels == 0 || input[1] == channels)) return;
  throw std::invalid_argument(
      fmt::format("layer {} takes images [n, {}, height, width], not {}", layer.name(),
                  channels > 0 ? std::to_string(channels) : "channels", to_string(input)));
}

std::int64_t window_count(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                          std::int64_t padding) {
  const std::int64_t room = size + 2 * padding - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

InitialValues of_linear(std::int64_t in_features) {
  return InitialValues::uniform(1 / std::sqrt(static_cast<double>(in_features)));
}

}  // namespace

ConvolutionLayer::ConvolutionLayer(std::string name, const ConvolutionOptions& options)
    : Layer(std::move(name)),
      options_(options),
      packed_(c10::make_intrusive<PackedWeights>(options.model_width)) {
  const double fan_out =
      static_cast<double>(options.out_channels * options.kernel * options.kernel);
  weight_ = register_parameter(
      "weight", {options.out_channels, options.in_channels, options.kernel, options.kernel},
      InitialValues::normal(std::sqrt(2 / fan_out)));
}

at::Tensor ConvolutionLayer::forward(const at::Tensor& input) {
  return convolution(input, weight_, options_.stride, options_.padding, packed_);
}

Shape ConvolutionLayer::output_shape(const Shape& input) const {
  require_image(*this, input, options_.in_channels);
  if (std::min(input[2], input[3]) < options_.smallest_image) {
    throw std::invalid_argument(fmt::format("image {}x{} is too small for layer {}: at least {}x{}",
                                            input[2], input[3], name(), options_.smallest_image,
                                            options_.smallest_image));
  }
  const auto outputs = [this](std::int64_t size) {
    return window_count(size, options_.kernel, options_.stride, options_.padding);
  };
  return {input[0], options_.out_channels, outputs(input[2]), outputs(input[3])};
}

LayerFlops ConvolutionLayer::flops(const Shape& input) const {
  const Shape output = output_shape(input);
  const double one = 2.0 * static_cast<double>(output[0]) * static_cast<double>(output[1]) *
                     static_cast<double>(output[2]) * static_cast<double>(output[3]) *
                     static_cast<double>(options_.in_channels) *
                     static_cast<double>(options_.kernel * options_.kernel);
  return {one, one, one};
}

BatchNormLayer::BatchNormLayer(std::string name, std::int64_t channels)
    : Layer(std::move(name)), channels_(channels) {
  const InitialValues zero = InitialValues::constant(0);
  const InitialValues one = InitialValues::constant(1);
  weight_ = register_parameter("weight", {channels}, one);
  bias_ = register_parameter("bias", {channels}, zero);
  running_mean_ = register_buffer("running_mean", {channels}, zero);
  running_var_ = register_buffer("running_var", {channels}, one);
  num_batches_tracked_ = register_buffer("num_batches_tracked", {}, zero, at::kLong);
}

at::Tensor BatchNormLayer::forward(const at::Tensor& input) { return normalised(input, {}); }

at::Tensor BatchNormLayer::forward_with_relu(const at::Tensor& input, const at::Tensor& addend) {
  return normalised(input, {.addend = addend, .relu = true});
}

at::Tensor BatchNormLayer::normalised(const at::Tensor& input, const FusedEpilogue& after) {
  if (training()) num_batches_tracked_.add_(1);
  return batch_norm(input, {weight_, bias_, running_mean_, running_var_}, {.training = training()},
                    after);
}

Shape BatchNormLayer::output_shape(const Shape& input) const {
  require_image(*this, input, channels_);
  return input;
}

at::Tensor ReluLayer::forward(const at::Tensor& input) {
  at::Tensor result = input;
  return input.is_leaf() ? at::relu(input) : at::relu_(result);
}

Shape ReluLayer::output_shape(const Shape& input) const { return input; }

at::Tensor InputGradientLayer::forward(const at::Tensor& input) {
  if (input.requires_grad() || !c10::GradMode::is_enabled()) return input;
  return input.detach().requires_grad_(true);
}

Shape InputGradientLayer::output_shape(const Shape& input) const { return input; }

at::Tensor MaxPoolLayer::forward(const at::Tensor& input) {
  return at::max_pool2d(input, {3, 3}, {2, 2}, {1, 1});
}

Shape MaxPoolLayer::output_shape(const Shape& input) const {
  require_image(*this, input, 0);
  return {input[0], input[1], window_count(input[2], 3, 2, 1), window_count(input[3], 3, 2, 1)};
}

at::Tensor AveragePoolLayer::forward(const at::Tensor& input) {
  return at::adaptive_avg_pool2d(input, {1, 1}).flatten(1);
}

Shape AveragePoolLayer::output_shape(const Shape& input) const {
  require_image(*this, input, 0);
  return {input[0], input[1]};
}

LinearLayer::LinearLayer(std::string name, std::int64_t in_features, std::int64_t out_features,
                         bool bias)
    : LinearLayer(std::move(name), in_features, out_features, of_linear(in_features),
                  bias ? std::optional(of_linear(in_features)) : std::nullopt) {}

LinearLayer::LinearLayer(std::string name, std::int64_t in_features, std::int64_t out_features,
                         const InitialValues& weight, const std::optional<InitialValues>& bias)
    : Layer(std::move(name)), in_features_(in_features), out_features_(out_features) {
  weight_ = register_parameter("weight", {out_features, in_features}, weight);
  if (bias) bias_ = register_parameter("bias", {out_features}, *bias);
}

LinearLayer::LinearLayer(std::string name, at::Tensor weight, at::Tensor bias)
    : Layer(std::move(name)), in_features_(weight.size(1)), out_features_(weight.size(0)) {
  weight_ = register_parameter("weight", std::move(weight));
  if (bias.defined()) bias_ = register_parameter("bias", std::move(bias));
}

at::Tensor LinearLayer::forward(const at::Tensor& input) {
  return models::linear(input, weight_, bias_);
}

Shape LinearLayer::output_shape(const Shape& input) const {
  if (input.size() < 2 || input.back() != in_features_) {
    throw std::invalid_argument(
        fmt::format("layer {} takes [n, ..., {}], not {}", name(), in_features_, to_string(input)));
  }
  Shape output = input;
  output.back() = out_features_;
  return output;
}

LayerFlops LinearLayer::flops(const Shape& input) const {
  double values = 1;
  for (const std::int64_t size : output_shape(input)) values *= static_cast<double>(size);
  const double one = 2.0 * values * static_cast<double>(in_features_);
  return {one, one, one};
}

}  // namespace stratagem::models
