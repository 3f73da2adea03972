#include "bench/config/registered_catalogue.h"

#include "bench/config/plugins.h"
#include "models/registry/registry.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"

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
    catalogue.strategies.push_back({.name = name,
                                    .options = entry.options,
                                    .multi_device = entry.multi_device,
                                    .one_process = entry.one_process,
                                    .usual_dimensions = entry.usually_over(),
                                    .cannot_train = models_beyond(entry)});
  }
  for (const Plugin& plugin : loaded_plugins()) catalogue.plugins.push_back(plugin.identity);
  for (const std::string& name : models::model_names()) {
    const models::ModelEntry& entry = models::find_model(name);
    catalogue.models.push_back({.name = name,
                                .has_images = entry.input_kind == models::InputKind::image,
                                .default_image_size = entry.default_image_size,
                                .smallest_image_size = entry.smallest_image,
                                .layers = entry.layers,
                                .has_tokens = entry.input_kind == models::InputKind::tokens,
                                .takes_sizes = entry.takes_sizes,
                                .can_be_sharded = !entry.sharded_sizes.empty(),
                                .longest_sequence = entry.longest_sequence,
                                .family = entry.family.empty() ? name : entry.family});
  }
  for (const std::string& name : schedules::schedule_names()) {
    const int stages = schedules::find_schedule(name).stages_per_device;
    catalogue.schedules.push_back(
        {.name = name, .asks_for_stages = stages == schedules::any_number});
  }
  return catalogue;
}

}  // namespace stratagem::bench
