// ddp_model_parallel: every rank spreads the layers over devices of its own, and gradients are
// summed across the ranks. The schedule "naive" is plain model parallelism inside, any other a
// pipeline of micro-batches.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make_ddp_model_parallel(
    const strategies::StrategyContext& context) {
  return make_staged(context, context.options.schedule, by_split_size(context));
}

const strategies::StrategyRegistration ddp_model_parallel_registration{
    {.name = "ddp_model_parallel",
     .summary = "layers split over the devices of a rank, gradients summed across the ranks",
     .options = strategies::option_names(
         {strategies::rank_options, strategies::micro_batch_options, strategies::stage_options,
          strategies::replica_options, strategies::shard_options, strategies::reshard_options,
          strategies::shard_choice, strategies::precision_options, strategies::reduction_options}),
     .multi_device = true,
     .dimensions = {"data", "pipeline"},
     .make = make_ddp_model_parallel}};

}  // namespace
}  // namespace stratagem::presets
