// One linear layer without bias that computes its input's gradient: an example of tensor
// parallelism shards it by columns, with an all-reduce of that gradient in its backward pass.

#include <cmath>
#include <memory>

#include "models/basic_layers.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models::column_linear {
namespace {

constexpr std::int64_t kFeatures = 1024;
constexpr std::int64_t kOutputs = 1024;

/// Returns the distribution of Glorot and Bengio 2010.
InitialValues xavier_uniform(std::int64_t in, std::int64_t out) {
  return InitialValues::uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
}

Model make_column_linear(const ModelOptions& options) {
  const std::int64_t features = options.features == 0 ? kFeatures : options.features;
  const std::int64_t outputs = class_count(options, kOutputs);
  Model model{"column_linear", {}};
  model.layers.push_back(std::make_unique<InputGradientLayer>("input"));
  model.layers.push_back(std::make_unique<LinearLayer>(
      "column", features, outputs, xavier_uniform(features, outputs), std::nullopt));
  return model;
}

}  // namespace
}  // namespace stratagem::models::column_linear

STRATAGEM_REGISTER(stratagem::models::ModelEntry{
    .name = "column_linear",
    .summary = "one linear layer without bias, 1024 -> 1024 or of the sizes that options give, "
               "whose input needs a gradient",
    .input_kind = stratagem::models::InputKind::vector,
    .features = stratagem::models::column_linear::kFeatures,
    .classes = stratagem::models::column_linear::kOutputs,
    .make = stratagem::models::column_linear::make_column_linear,
    .default_cut = {"column"},
    .layers = 2,
    .sharded_sizes = {{"outputs", stratagem::models::outputs_from_options, /*evenly=*/true}},
    .takes_sizes = true});
