// single: the whole model and the whole batch on one device. What every other strategy is compared
// with.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make_single(const strategies::StrategyContext& context) {
  return make_staged(context, "naive", by_count(context, /*parts=*/1));
}

const strategies::StrategyRegistration single_registration{
    {.name = "single",
     .summary = "the whole model on one device",
     .options = strategies::option_names({strategies::precision_options}),
     .multi_device = false,
     .make = make_single}};

}  // namespace
}  // namespace stratagem::presets
