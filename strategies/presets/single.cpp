// single: the whole model and the whole batch on one device. What every other strategy is compared
// with.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"
#include "strategies/slices.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  const std::int64_t batch = context.workload.options().batch;
  return make_staged(context, "naive", split_batch(batch, batch));
}

const StrategyRegistration registration{{.name = "single",
                                         .summary = "the whole model on one device",
                                         .options = {},
                                         .multi_device = false,
                                         .make = make}};

}  // namespace
}  // namespace stratagem::strategies
