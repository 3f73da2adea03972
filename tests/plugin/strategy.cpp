// eager_pipeline: the layers spread over the devices, always by the schedule eager_1f1b.
#include <array>

#include "strategies/presets/staged.h"
#include "strategies/registry.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make(const strategies::StrategyContext& context) {
  return make_staged(context, "eager_1f1b", by_split_size(context));
}

constexpr std::array own_options = {"split_size"};

const strategies::StrategyRegistration registration{
    {.name = "eager_pipeline",
     .summary = "a pipeline whose transfers are a micro-batch ahead",
     .options = strategies::option_names(
         {strategies::rank_options, strategies::stage_options, own_options}),
     .multi_device = true,
     .make = make,
     .schedule = "eager_1f1b"}};

}  // namespace
}  // namespace stratagem::presets
