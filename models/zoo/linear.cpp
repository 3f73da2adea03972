// One linear layer of any size, for the examples of data-parallel training.

#include <memory>

#include "models/basic_layers.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models::linear_model {
namespace {

constexpr std::int64_t kFeatures = 10;
constexpr std::int64_t kOutputs = 10;

Model make_linear(const ModelOptions& options) {
  const std::int64_t features = options.features == 0 ? kFeatures : options.features;
  Model model{"linear", {}};
  model.layers.push_back(std::make_unique<LinearLayer>(
      "linear", features, class_count(options, kOutputs), options.bias));
  return model;
}

}  // namespace
}  // namespace stratagem::models::linear_model

STRATAGEM_REGISTER(stratagem::models::ModelEntry{
    .name = "linear",
    .summary = "one linear layer, 10 -> 10, or of the sizes that options give",
    .input_kind = stratagem::models::InputKind::vector,
    .features = stratagem::models::linear_model::kFeatures,
    .classes = stratagem::models::linear_model::kOutputs,
    .make = stratagem::models::linear_model::make_linear,
    .layers = 1,
    .takes_sizes = true});
