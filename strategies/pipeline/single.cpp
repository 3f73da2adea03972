// single: the whole model and the whole batch on one device. What every other strategy is compared
// with.
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/staged_strategy.h"
#include "strategies/registry.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  const std::int64_t batch = context.workload.options().batch;
  return std::make_unique<StagedStrategy>(context, pipeline::make_schedule("naive", 1, 1), 0.0,
                                          split_batch(batch, batch));
}

const StrategyRegistration registration{{.name = "single",
                                         .summary = "the whole model on one device",
                                         .options = {},
                                         .multi_device = false,
                                         .make = make}};

}  // namespace
}  // namespace stratagem::strategies
