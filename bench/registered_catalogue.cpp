#include "bench/registered_catalogue.h"

#include <algorithm>

#include "models/registry.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/registry.h"

namespace stratagem::bench {

namespace {

std::vector<std::string> models_beyond(const strategies::StrategyEntry& strategy) {
  std::vector<std::string> names;
  for (const std::string& name : models::model_names()) {
    if (strategy.can_train && !strategy.can_train(models::find_model(name))) names.push_back(name);
  }
  return names;
}

}  // namespace

Catalogue registered_catalogue() {
  Catalogue catalogue;
  for (const std::string& name : strategies::strategy_names()) {
    const strategies::StrategyEntry& entry = strategies::find_strategy(name);
    const auto has = [&](const char* dimension) {
      return std::ranges::find(entry.dimensions, dimension) != entry.dimensions.end();
    };
    catalogue.strategies.push_back({.name = name,
                                    .options = entry.options,
                                    .multi_device = entry.multi_device,
                                    .replicated = has("data") || has("tensor"),
                                    .tensor_parallel = has("tensor"),
                                    .cannot_train = models_beyond(entry)});
  }
  for (const std::string& name : models::model_names()) {
    const models::ModelEntry& entry = models::find_model(name);
    catalogue.models.push_back({.name = name,
                                .has_images = entry.input_kind == models::InputKind::image,
                                .default_image_size = entry.default_image_size,
                                .smallest_image_size = entry.smallest_image,
                                .layers = entry.layers,
                                .has_tokens = entry.input_kind == models::InputKind::tokens,
                                .longest_sequence = entry.longest_sequence});
  }
  catalogue.schedules = pipeline::schedule_names();
  return catalogue;
}

}  // namespace stratagem::bench
