// pipeline: the layers spread over the devices and the batch cut into micro-batches, so that the
// devices work at the same time. A schedule says who runs what when.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"
#include "strategies/slices.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return make_staged(context, context.options.schedule,
                     split_batch(context.workload.options().batch, context.options.split_size));
}

const StrategyRegistration registration{
    {.name = "pipeline",
     .summary = "layers split over the devices, micro-batches keep them all at work",
     .options = with_rank_options({"split_size", "schedule", "virtual_stages", "cut", "partition"}),
     .multi_device = true,
     .make = make}};

}  // namespace
}  // namespace stratagem::strategies
