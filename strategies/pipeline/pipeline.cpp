// pipeline: the layers spread over the devices and the batch cut into micro-batches, so that the
// devices work at the same time. A schedule says who runs what when.
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/staged_strategy.h"
#include "strategies/registry.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  const int stages = static_cast<int>(context.devices.size());
  auto slices = split_batch(context.workload.options().batch, context.options.split_size);
  const int micro_batches = static_cast<int>(slices.size());
  const pipeline::ScheduleEntry& entry = pipeline::find_schedule(context.options.schedule);
  return std::make_unique<StagedStrategy>(
      context, pipeline::make_schedule(entry.name, stages, micro_batches),
      entry.ideal_bubble(stages, micro_batches), std::move(slices));
}

const StrategyRegistration registration{
    {.name = "pipeline",
     .summary = "layers split over the devices, micro-batches keep them all at work",
     .options = {"split_size", "schedule", "cut", "partition"},
     .multi_device = true,
     .make = make}};

}  // namespace
}  // namespace stratagem::strategies
