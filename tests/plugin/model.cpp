// A residual multi-layer perceptron: six blocks x + relu(fc(x)) of 256 between two linear layers.
// Layers: input, block1, ..., block6, output.
#include <ATen/ops/add.h>
#include <ATen/ops/relu.h>

#include <memory>
#include <string>
#include <utility>

#include "models/basic_layers.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models {
namespace {

constexpr std::int64_t features = 128;
constexpr std::int64_t hidden = 256;
constexpr std::int64_t blocks = 6;
constexpr std::int64_t classes = 10;

/// [n, width] -> [n, width]: x + relu(fc(x)).
class ResidualLinear : public Layer {
 public:
  ResidualLinear(std::string name, std::int64_t width)
      : Layer(std::move(name)), linear_(this->name() + ".fc", width, width) {
    adopt(linear_);
  }

  at::Tensor forward(const at::Tensor& input) override {
    return at::add(input, at::relu(linear_.forward(input)));
  }
  Shape output_shape(const Shape& input) const override { return linear_.output_shape(input); }
  LayerFlops flops(const Shape& input) const override { return linear_.flops(input); }

 private:
  LinearLayer linear_;
};

Model make_residual_mlp(const ModelOptions& options) {
  const std::int64_t width = scaled_width(hidden, options.width);
  Model model{"residual_mlp", {}};
  model.layers.push_back(std::make_unique<LinearLayer>("input", features, width));
  for (std::int64_t block = 1; block <= blocks; ++block) {
    model.layers.push_back(
        std::make_unique<ResidualLinear>("block" + std::to_string(block), width));
  }
  model.layers.push_back(
      std::make_unique<LinearLayer>("output", width, class_count(options, classes)));
  return model;
}

}  // namespace
}  // namespace stratagem::models

STRATAGEM_REGISTER(stratagem::models::ModelEntry{
    .name = "residual_mlp",
    .summary = "multi-layer perceptron with residual blocks of 256",
    .input_kind = stratagem::models::InputKind::vector,
    .features = stratagem::models::features,
    .classes = stratagem::models::classes,
    .make = stratagem::models::make_residual_mlp,
    .default_cut = {"block4"},
    .layers = stratagem::models::blocks + 2});
