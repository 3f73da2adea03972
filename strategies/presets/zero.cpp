#include "strategies/presets/zero.h"

#include <utility>

#include "strategies/presets/staged.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make(strategies::StrategyContext context,
                                           const std::string& shards) {
  context.options.shard = shards;
  if (!has_stages(context)) {
    return make_staged(context, "naive", by_count(context, context.options.accumulation_steps));
  }
  return make_staged(context, context.options.schedule, by_split_size(context));
}

}  // namespace

strategies::StrategyEntry zero_entry(std::string name, std::string summary, std::string shards) {
  std::vector<std::string> options = strategies::option_names(
      {strategies::rank_options, strategies::micro_batch_options, strategies::stage_options,
       strategies::accumulation_options, strategies::shard_options, strategies::precision_options,
       strategies::reduction_options, strategies::reduce_scatter_options});
  if (shards == "parameters") options.emplace_back(strategies::reshard_options.front());
  return {.name = std::move(name),
          .summary = std::move(summary),
          .options = std::move(options),
          .multi_device = true,
          .dimensions = {"data", "pipeline"},
          .make = [shards](
                      const strategies::StrategyContext& context) { return make(context, shards); },
          .usual_dimension = "data",
          .shards = shards};
}

}  // namespace stratagem::presets
