// The two-layer model of PyTorch's distributed tutorials: net1 (10 -> 10), relu, net2 (10 -> 5).

#include <memory>

#include "models/basic_layers.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models::toy {
namespace {

constexpr std::int64_t kFeatures = 10;
constexpr std::int64_t kWidth = 10;
constexpr std::int64_t kClasses = 5;

Model make_toy(const ModelOptions& options) {
  const std::int64_t width = scaled_width(kWidth, options.width);
  Model model{"toy", {}};
  model.layers.push_back(std::make_unique<LinearLayer>("net1", kFeatures, width));
  model.layers.push_back(std::make_unique<ReluLayer>("relu"));
  model.layers.push_back(
      std::make_unique<LinearLayer>("net2", width, class_count(options, kClasses)));
  return model;
}

}  // namespace
}  // namespace stratagem::models::toy

STRATAGEM_REGISTER(stratagem::models::ModelEntry{
    .name = "toy",
    .summary = "two linear layers, 10 -> 10 -> 5",
    .input_kind = stratagem::models::InputKind::vector,
    .features = stratagem::models::toy::kFeatures,
    .classes = stratagem::models::toy::kClasses,
    .make = stratagem::models::toy::make_toy,
    .default_cut = {"net2"},
    .layers = 3,
    .sharded_sizes = {{"hidden features", stratagem::models::toy::kWidth}}});
