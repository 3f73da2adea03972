// model_parallel: the layers spread over the devices, the whole batch at once, so that one device
// works at a time. It makes room for a larger model, not speed: ideal bubble (p - 1) / p.
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/staged_strategy.h"
#include "strategies/registry.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  const int stages = static_cast<int>(context.devices.size());
  const std::int64_t batch = context.workload.options().batch;
  return std::make_unique<StagedStrategy>(context, pipeline::make_schedule("naive", stages, 1),
                                          pipeline::find_schedule("naive").ideal_bubble(stages, 1),
                                          split_batch(batch, batch));
}

const StrategyRegistration registration{
    {.name = "model_parallel",
     .summary = "layers split over the devices, one works at a time",
     .options = {"cut", "partition"},
     .multi_device = true,
     .make = make}};

}  // namespace
}  // namespace stratagem::strategies
