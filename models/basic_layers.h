// The layers of a convolutional or fully connected model: convolution, batch normalisation, ReLU,
// pooling, linear. Initial values follow torchvision's ResNet and torch's Linear.
#pragma once

#include <optional>

#include "models/cpu_kernels/batch_norm.h"
#include "models/cpu_kernels/packed_weights.h"
#include "models/layer.h"

namespace stratagem::models {

/// A square convolution without bias: [n, in, h, w] -> [n, out, h', w']. Initial values are Kaiming
/// normal, fan out: standard deviation sqrt(2 / (out * kernel * kernel)).
struct ConvolutionOptions {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t smallest_image = 1;  // a smaller height or width is an error
  double model_width = 1.0;         // the ModelOptions::width that scaled the channels
};

class ConvolutionLayer : public Layer {
 public:
  ConvolutionLayer(std::string name, const ConvolutionOptions& options);
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  LayerFlops flops(const Shape& input) const override;

 private:
  ConvolutionOptions options_;
  at::Tensor weight_;
  PackedWeightsPointer packed_;
};

/// Normalises each channel over the batch and the image, with momentum 0.1 and epsilon 1e-5.
/// Training updates the running statistics and counts the calls in num_batches_tracked.
class BatchNormLayer : public Layer {
 public:
  BatchNormLayer(std::string name, std::int64_t channels);
  at::Tensor forward(const at::Tensor& input) override;
  /// Returns relu(normalised input + addend); an undefined addend adds nothing.
  at::Tensor forward_with_relu(const at::Tensor& input, const at::Tensor& addend = {});
  Shape output_shape(const Shape& input) const override;

 private:
  std::int64_t channels_;
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor running_mean_;
  at::Tensor running_var_;
  at::Tensor num_batches_tracked_;

  at::Tensor normalised(const at::Tensor& input, const FusedEpilogue& after);
};

/// Works in place if autograd made the input (the producers here do not need their output). A
/// stage's input is a leaf and stays unchanged.
class ReluLayer : public Layer {
 public:
  using Layer::Layer;
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
};

/// Pools squares of 3x3, stride 2, padding 1.
class MaxPoolLayer : public Layer {
 public:
  using Layer::Layer;
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
};

/// Returns the mean over the image: [n, c, h, w] -> [n, c].
class AveragePoolLayer : public Layer {
 public:
  using Layer::Layer;
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
};

/// Returns its input, and requires the input's gradient as if a layer with parameters came before.
class InputGradientLayer : public Layer {
 public:
  using Layer::Layer;
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
};

/// Maps [n, ..., in] -> [n, ..., out], with or without a bias.
class LinearLayer : public Layer {
 public:
  /// Draws both uniformly within 1 / sqrt(in).
  LinearLayer(std::string name, std::int64_t in_features, std::int64_t out_features,
              bool bias = true);
  LinearLayer(std::string name, std::int64_t in_features, std::int64_t out_features,
              const InitialValues& weight, const std::optional<InitialValues>& bias);
  /// Takes these values; an undefined bias means no bias.
  LinearLayer(std::string name, at::Tensor weight, at::Tensor bias);
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  LayerFlops flops(const Shape& input) const override;

  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  std::int64_t in_features_;
  std::int64_t out_features_;
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace stratagem::models
