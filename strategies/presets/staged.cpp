#include "strategies/presets/staged.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "models/registry/registry.h"
#include "strategies/data_parallel/replicated_strategy.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/registry.h"
#include "strategies/sharding/sharded_strategy.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::presets {
namespace {

using strategies::StrategyContext;
using tensor_parallel::Layout;

bool usually_has(const StagedPreset& preset, const char* dimension) {
  return std::ranges::find(preset.usual_dimensions, dimension) != preset.usual_dimensions.end();
}

std::unique_ptr<strategies::Strategy> make(StrategyContext context, const StagedPreset& preset) {
  if (!preset.shards.empty()) context.options.shard = preset.shards;
  const bool has_stages = usually_has(preset, "pipeline") ||
                          context.groups.activations != nullptr || context.devices.size() > 1;
  const bool pipelined = has_stages && !preset.one_at_a_time;
  const std::int64_t parts = context.options.accumulation_steps;
  const bool by_size = pipelined && parts == 1;
  return make_staged(context, pipelined ? context.options.schedule : "naive",
                     by_size ? by_split_size(context) : by_count(context, parts), preset.layout);
}

std::vector<std::string> options_of(const StagedPreset& preset) {
  const bool shards_anyway = !preset.shards.empty();
  std::vector<std::string> names;
  const auto add = [&names](auto... groups) {
    for (const std::string& name : strategies::option_names({groups...})) names.push_back(name);
  };
  add(strategies::accumulation_options, strategies::precision_options);
  if (preset.usual_dimensions.empty()) return names;
  add(strategies::rank_options, strategies::stage_options, strategies::tensor_options,
      strategies::shard_options, strategies::reduction_options, strategies::reduce_scatter_options);
  if (!preset.one_at_a_time) add(strategies::micro_batch_options);
  if (!shards_anyway) add(strategies::replica_options, strategies::shard_choice);
  if (!shards_anyway || preset.shards == "parameters") add(strategies::reshard_options);
  if (preset.layout == Layout::sequence) add(strategies::sequence_options);
  return names;
}

/// Of a strategy whose layers are sharded where no mesh is given.
bool can_be_sharded(const models::ModelEntry& model, Layout layout) {
  const bool has_sequence = model.input_kind == models::InputKind::tokens;
  return !model.sharded_sizes.empty() && (layout == Layout::tensor || has_sequence);
}

}  // namespace

std::unique_ptr<strategies::Strategy> make_staged(const StrategyContext& context,
                                                  const std::string& schedule, Partition partition,
                                                  Layout layout) {
  const int ranks = context.groups.activations == nullptr ? 1 : context.groups.activations->size();
  const auto& entry = schedules::find_schedule(schedule);
  const schedules::ScheduleSize size{
      .devices = ranks * static_cast<int>(context.devices.size()),
      .stages_per_device = entry.stages_for(static_cast<int>(context.options.virtual_stages))};
  const bool exchanges_each = context.options.shard != "none";
  const auto planner = [=, replica = context.groups.replica, &entry,
                        partition = std::move(partition)](std::int64_t samples) {
    stages::StepPlan plan{.partition = partition(samples)};
    if (exchanges_each) plan.partition = schedules::with_equal_counts(plan.partition);
    schedules::ScheduleSize own = size;
    own.micro_batches = static_cast<int>(std::ranges::count(
        plan.partition, replica, [](const schedules::Slice& slice) { return slice.replica; }));
    plan.ideal_bubble = entry.ideal_bubble(own);
    plan.schedule = schedules::make_schedule(schedule, own, ranks);
    return plan;
  };
  if (context.options.shard != "none" || context.workload.options().mixed) {
    return std::make_unique<sharding::ShardedStrategy>(context, planner, layout);
  }
  if (context.groups.data.empty()) {
    return std::make_unique<stages::StagedStrategy>(context, planner, layout);
  }
  return std::make_unique<data_parallel::ReplicatedStrategy>(context, planner, layout);
}

Partition by_split_size(const StrategyContext& context) {
  return [replicas = context.groups.replicas,
          split_size = context.options.split_size](std::int64_t samples) {
    return schedules::split_batch_per_replica(samples, replicas, split_size);
  };
}

Partition by_count(const StrategyContext& context, std::int64_t parts) {
  return [replicas = context.groups.replicas, parts](std::int64_t samples) {
    return schedules::split_batch_per_replica_by_count(samples, replicas, parts);
  };
}

strategies::StrategyEntry staged_entry(StagedPreset preset) {
  strategies::StrategyEntry entry{
      .name = preset.name,
      .summary = preset.summary,
      .options = options_of(preset),
      .multi_device = !preset.usual_dimensions.empty(),
      .dimensions = {"data", "pipeline", "tensor"},
      .make = [preset](const StrategyContext& context) { return make(context, preset); },
      .shares_sequence = preset.layout == Layout::sequence,
      .usual_dimensions = preset.usual_dimensions,
      .shards = preset.shards};
  if (!entry.multi_device) entry.dimensions.clear();
  if (usually_has(preset, "tensor")) {
    entry.can_train = [layout = preset.layout](const models::ModelEntry& model) {
      return can_be_sharded(model, layout);
    };
  }
  return entry;
}

}  // namespace stratagem::presets
