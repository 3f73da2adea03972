// A multi-layer perceptron wide enough to be worth timing: eight linear layers of 1024 with ReLU
// between them. Layers: fc1, relu1, fc2, ..., relu7, fc8.

#include <memory>
#include <string>

#include "models/basic_layers.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models::mlp {
namespace {

constexpr std::int64_t kFeatures = 1024;
constexpr std::int64_t kWidth = 1024;
constexpr std::int64_t kDepth = 8;
constexpr std::int64_t kClasses = 1000;

Model make_mlp(const ModelOptions& options) {
  const std::int64_t width = scaled_width(kWidth, options.width);
  Model model{"mlp", {}};
  for (std::int64_t i = 1; i <= kDepth; ++i) {
    const std::string number = std::to_string(i);
    const std::int64_t in = i == 1 ? kFeatures : width;
    const std::int64_t out = i == kDepth ? class_count(options, kClasses) : width;
    model.layers.push_back(std::make_unique<LinearLayer>("fc" + number, in, out));
    if (i < kDepth) model.layers.push_back(std::make_unique<ReluLayer>("relu" + number));
  }
  return model;
}

}  // namespace
}  // namespace stratagem::models::mlp

STRATAGEM_REGISTER(stratagem::models::ModelEntry{
    .name = "mlp",
    .summary = "multi-layer perceptron: 8 linear layers of 1024 with ReLU",
    .input_kind = stratagem::models::InputKind::vector,
    .features = stratagem::models::mlp::kFeatures,
    .classes = stratagem::models::mlp::kClasses,
    .make = stratagem::models::mlp::make_mlp,
    .default_cut = {"fc5"},
    .layers = 2 * stratagem::models::mlp::kDepth - 1,
    .sharded_sizes = {{"hidden features", stratagem::models::mlp::kWidth}}});
