#include "strategies/presets/staged.h"

#include <algorithm>
#include <utility>

#include "strategies/data_parallel/replicated_strategy.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/staged_strategy.h"

namespace stratagem::strategies {

std::unique_ptr<Strategy> make_staged(const StrategyContext& context, const std::string& schedule,
                                      std::vector<Slice> partition,
                                      tensor_parallel::Layout layout) {
  const RankGroups& groups = context.groups;
  const int ranks = groups.activations == nullptr ? 1 : groups.activations->size();
  const pipeline::ScheduleEntry& entry = pipeline::find_schedule(schedule);
  const pipeline::ScheduleSize size{
      .devices = ranks * static_cast<int>(context.devices.size()),
      .micro_batches = static_cast<int>(std::ranges::count(
          partition, groups.replica, [](const Slice& slice) { return slice.replica; })),
      .stages_per_device = entry.interleaved ? context.options.virtual_stages : 1};
  const double bubble = entry.ideal_bubble(size);
  auto lowered = pipeline::make_schedule(schedule, size, ranks);
  if (groups.data.empty()) {
    return std::make_unique<StagedStrategy>(context, std::move(lowered), bubble,
                                            std::move(partition), layout);
  }
  return std::make_unique<ReplicatedStrategy>(context, lowered, bubble, std::move(partition),
                                              layout);
}

bool has_stages(const StrategyContext& context) {
  return context.groups.activations != nullptr || context.devices.size() > 1;
}

std::vector<std::string> with_rank_options(std::vector<std::string> own) {
  own.insert(own.begin(), {"ranks", "mesh", "backend", "interface", "straggler"});
  return own;
}

}  // namespace stratagem::strategies
