#include "strategies/presets/staged.h"

#include <algorithm>
#include <utility>

#include "strategies/data_parallel/replicated_strategy.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/registry.h"
#include "strategies/sharding/sharded_strategy.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::presets {

std::unique_ptr<strategies::Strategy> make_staged(const strategies::StrategyContext& context,
                                                  const std::string& schedule, Partition partition,
                                                  tensor_parallel::Layout layout) {
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

Partition by_split_size(const strategies::StrategyContext& context) {
  return [replicas = context.groups.replicas,
          split_size = context.options.split_size](std::int64_t samples) {
    return schedules::split_batch_per_replica(samples, replicas, split_size);
  };
}

Partition by_count(const strategies::StrategyContext& context, std::int64_t parts) {
  return [replicas = context.groups.replicas, parts](std::int64_t samples) {
    return schedules::split_batch_per_replica_by_count(samples, replicas, parts);
  };
}

bool has_stages(const strategies::StrategyContext& context) {
  return context.groups.activations != nullptr || context.devices.size() > 1;
}

}  // namespace stratagem::presets
