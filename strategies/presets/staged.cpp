#include "strategies/presets/staged.h"

#include <algorithm>
#include <utility>

#include "strategies/data_parallel/replicated_strategy.h"
#include "strategies/schedules/registry.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::presets {

std::unique_ptr<strategies::Strategy> make_staged(const strategies::StrategyContext& context,
                                                  const std::string& schedule,
                                                  std::vector<schedules::Slice> partition,
                                                  tensor_parallel::Layout layout) {
  const strategies::RankGroups& groups = context.groups;
  const int ranks = groups.activations == nullptr ? 1 : groups.activations->size();
  const schedules::ScheduleEntry& entry = schedules::find_schedule(schedule);
  const schedules::ScheduleSize size{
      .devices = ranks * static_cast<int>(context.devices.size()),
      .micro_batches = static_cast<int>(std::ranges::count(
          partition, groups.replica, [](const schedules::Slice& slice) { return slice.replica; })),
      .stages_per_device =
          entry.interleaved ? static_cast<int>(context.options.virtual_stages) : 1};
  const double bubble = entry.ideal_bubble(size);
  auto lowered = schedules::make_schedule(schedule, size, ranks);
  if (groups.data.empty()) {
    return std::make_unique<stages::StagedStrategy>(context, std::move(lowered), bubble,
                                                    std::move(partition), layout);
  }
  return std::make_unique<data_parallel::ReplicatedStrategy>(context, lowered, bubble,
                                                             std::move(partition), layout);
}

bool has_stages(const strategies::StrategyContext& context) {
  return context.groups.activations != nullptr || context.devices.size() > 1;
}

}  // namespace stratagem::presets
