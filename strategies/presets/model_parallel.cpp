// model_parallel: the layers spread over the devices, the whole batch at once, so that one device
// works at a time. It makes room for a larger model, not speed: ideal bubble (p - 1) / p.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"
#include "strategies/slices.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return make_staged(context, "naive", share_batch(context.workload.options().batch, /*parts=*/1));
}

const StrategyRegistration registration{
    {.name = "model_parallel",
     .summary = "layers split over the devices, one works at a time",
     .options = with_rank_options({"cut", "partition"}),
     .multi_device = true,
     .make = make}};

}  // namespace
}  // namespace stratagem::strategies
