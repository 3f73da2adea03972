// data_parallel: nn.DataParallel. One process copies the model to every device in each step,
// gathers the outputs on one of them and sums the gradients on the first. Each option removes one
// of these costs, until it is DDP in one process.
#include <memory>

#include "strategies/data_parallel/data_parallel_strategy.h"
#include "strategies/registry.h"

namespace stratagem::presets {

STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "data_parallel",
    .summary = "the whole model on every device, copied from the first in each step",
    .options = strategies::option_names({strategies::data_parallel_options,
                                         strategies::recompute_options}),
    .multi_device = true,
    .dimensions = {"data"},
    .outline =
        [](const strategies::PlanRequest&) {
          return strategies::PlanOutline{.in_one_process = true};
        },
    .make =
        [](const strategies::StrategyContext& context) {
          return std::make_unique<data_parallel::DataParallelStrategy>(context);
        },
    .check = data_parallel::check_options,
    .one_process = true});

}  // namespace stratagem::presets
