#include "strategies/presets/tensor.h"

#include <utility>

#include "strategies/presets/staged.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make(const strategies::StrategyContext& context,
                                           tensor_parallel::Layout layout) {
  if (!has_stages(context)) {
    return make_staged(context, "naive", by_count(context, /*parts=*/1), layout);
  }
  return make_staged(context, context.options.schedule, by_split_size(context), layout);
}

std::vector<std::string> options_of(tensor_parallel::Layout layout) {
  std::vector<std::string> names = strategies::option_names(
      {strategies::rank_options, strategies::tensor_options, strategies::micro_batch_options,
       strategies::stage_options, strategies::replica_options, strategies::shard_options,
       strategies::reshard_options, strategies::shard_choice, strategies::precision_options,
       strategies::reduction_options});
  if (layout == tensor_parallel::Layout::tensor) return names;
  for (const std::string& own : strategies::option_names(
           {strategies::sequence_options, strategies::reduce_scatter_options})) {
    names.push_back(own);
  }
  return names;
}

}  // namespace

strategies::StrategyEntry tensor_entry(std::string name, std::string summary,
                                       tensor_parallel::Layout layout) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .options = options_of(layout),
          .multi_device = true,
          .dimensions = {"data", "pipeline", "tensor"},
          .make = [layout](
                      const strategies::StrategyContext& context) { return make(context, layout); },
          .can_train =
              [layout](const models::ModelEntry& model) {
                const bool has_sequence = model.input_kind == models::InputKind::tokens;
                return !model.sharded_sizes.empty() &&
                       (layout == tensor_parallel::Layout::tensor || has_sequence);
              },
          .shares_sequence = layout == tensor_parallel::Layout::sequence};
}

}  // namespace stratagem::presets
