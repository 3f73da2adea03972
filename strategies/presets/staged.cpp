#include "strategies/presets/staged.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "models/registry/registry.h"
#include "strategies/stages/layer_groups.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::presets {
namespace {

using strategies::MicroBatchOption;
using strategies::PlanOutline;
using strategies::PlanRequest;
using strategies::StrategyContext;
using tensor_parallel::Layout;

bool usually_has(const StagedPreset& preset, const char* dimension) {
  return std::ranges::find(preset.usual_dimensions, dimension) != preset.usual_dimensions.end();
}

bool is_pipelined(const StagedPreset& preset) { return preset.schedule != "naive"; }

PlanOutline outline_of(const PlanRequest& request, const StagedPreset& preset) {
  const bool has_stages = usually_has(preset, "pipeline") || request.arrangement.devices > 1;
  const bool pipelined = has_stages && is_pipelined(preset);
  const bool by_size = pipelined && request.options.accumulation_steps == 1;
  const std::string& schedule =
      preset.schedule.empty() ? request.options.schedule : preset.schedule;
  return {.schedule = pipelined ? schedule : "naive",
          .cut_by = by_size ? MicroBatchOption::split_size : MicroBatchOption::accumulation_steps,
          .has_partial_gradients =
              (preset.layout == Layout::sequence || request.parts.has_common_heads) &&
              request.arrangement.tensor_ranks > 1};
}

std::vector<std::string> options_of(const StagedPreset& preset) {
  const bool shards_anyway = preset.shards.has_value();
  std::vector<std::string> names;
  const auto add = [&names](auto... groups) {
    for (const std::string& name : strategies::option_names({groups...})) names.push_back(name);
  };
  add(strategies::accumulation_options, strategies::recompute_options,
      strategies::precision_options);
  if (preset.usual_dimensions.empty()) return names;
  add(strategies::rank_options, strategies::stage_options, strategies::tensor_options,
      strategies::context_options, strategies::shard_options, strategies::reduction_options,
      strategies::reduce_scatter_options);
  if (is_pipelined(preset)) names.push_back("split_size");
  if (preset.schedule.empty()) add(strategies::schedule_options);
  if (!shards_anyway) add(strategies::replica_options, strategies::shard_choice);
  if (!shards_anyway || preset.shards == schedules::Sharded("parameters"))
    add(strategies::reshard_options);
  return names;
}

/// Returns whether a strategy with sharded layers can shard this model.
bool can_be_sharded(const models::ModelEntry& model, Layout layout) {
  const bool has_sequence = model.input_kind == models::InputKind::tokens;
  return !model.sharded_sizes.empty() && (layout == Layout::tensor || has_sequence);
}

}  // namespace

std::unique_ptr<strategies::Strategy> make_staged(const StrategyContext& context,
                                                  const strategies::Outline& outline,
                                                  Layout layout) {
  const PlanRequest request = stages::plan_request(context);
  const auto planner = [outline, request](std::int64_t samples) {
    PlanRequest of_batch = request;
    of_batch.samples = samples;
    return strategies::plan_of(of_batch, outline(of_batch));
  };
  return std::make_unique<stages::StagedStrategy>(context, planner, layout);
}

strategies::StrategyEntry staged_entry(StagedPreset preset) {
  strategies::StrategyEntry entry{
      .name = preset.name,
      .summary = preset.summary,
      .options = options_of(preset),
      .multi_device = !preset.usual_dimensions.empty(),
      .dimensions = {"data", "pipeline", "context", "tensor"},
      .outline = [preset](const PlanRequest& request) { return outline_of(request, preset); },
      .shares_sequence = preset.layout == Layout::sequence,
      .usual_dimensions = preset.usual_dimensions,
      .shards = preset.shards};
  entry.make = [outline = entry.outline, preset](StrategyContext context) {
    if (preset.shards.has_value()) context.options.shard = *preset.shards;
    return make_staged(context, outline, preset.layout);
  };
  if (!entry.multi_device) entry.dimensions.clear();
  if (usually_has(preset, "context")) {
    entry.can_train = [](const models::ModelEntry& model) { return model.shares_positions(); };
  }
  if (usually_has(preset, "tensor")) {
    entry.can_train = [layout = preset.layout](const models::ModelEntry& model) {
      return can_be_sharded(model, layout);
    };
  }
  return entry;
}

}  // namespace stratagem::presets
