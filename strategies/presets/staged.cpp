#include "strategies/presets/staged.h"

#include <algorithm>
#include <utility>

#include "strategies/data_parallel/replicated_strategy.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/staged_strategy.h"

namespace stratagem::strategies {

std::unique_ptr<Strategy> make_staged(const StrategyContext& context, const std::string& schedule,
                                      std::vector<Slice> partition) {
  const RankGroups& groups = context.groups;
  const int ranks = groups.activations == nullptr ? 1 : groups.activations->size();
  const int stages = ranks * static_cast<int>(context.devices.size());
  const auto micro_batches = static_cast<int>(std::ranges::count(
      partition, groups.replica, [](const Slice& slice) { return slice.replica; }));
  const double bubble = pipeline::find_schedule(schedule).ideal_bubble(stages, micro_batches);
  auto lowered = pipeline::make_schedule(schedule, stages, micro_batches, ranks);
  if (groups.data.empty()) {
    return std::make_unique<StagedStrategy>(context, std::move(lowered), bubble,
                                            std::move(partition));
  }
  return std::make_unique<ReplicatedStrategy>(context, lowered, bubble, std::move(partition));
}

std::vector<std::string> with_rank_options(std::vector<std::string> own) {
  own.insert(own.begin(), {"ranks", "mesh", "backend", "interface", "straggler"});
  return own;
}

}  // namespace stratagem::strategies
