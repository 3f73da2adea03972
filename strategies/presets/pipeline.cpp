// pipeline: the layers spread over the devices and the batch cut into micro-batches, so that the
// devices work at the same time. A schedule says who runs what when.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make_pipeline(const strategies::StrategyContext& context) {
  return make_staged(context, context.options.schedule, by_split_size(context));
}

const strategies::StrategyRegistration pipeline_registration{
    {.name = "pipeline",
     .summary = "layers split over the devices, micro-batches keep them all at work",
     .options =
         strategies::option_names({strategies::rank_options, strategies::micro_batch_options,
                                   strategies::stage_options, strategies::precision_options}),
     .multi_device = true,
     .make = make_pipeline}};

}  // namespace
}  // namespace stratagem::presets
