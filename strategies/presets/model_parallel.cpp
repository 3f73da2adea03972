// model_parallel: the layers spread over the devices, the whole batch at once, so that one device
// works at a time. It makes room for a larger model, not speed: ideal bubble (p - 1) / p.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make_model_parallel(
    const strategies::StrategyContext& context) {
  return make_staged(context, "naive", by_count(context, /*parts=*/1));
}

const strategies::StrategyRegistration model_parallel_registration{
    {.name = "model_parallel",
     .summary = "layers split over the devices, one works at a time",
     .options = strategies::option_names(
         {strategies::rank_options, strategies::stage_options, strategies::precision_options}),
     .multi_device = true,
     .make = make_model_parallel}};

}  // namespace
}  // namespace stratagem::presets
