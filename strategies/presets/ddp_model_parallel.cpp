// ddp_model_parallel: every rank spreads the layers over devices of its own, and gradients are
// summed across the ranks. The schedule "naive" is plain model parallelism inside, any other a
// pipeline of micro-batches.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"
#include "strategies/slices.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return make_staged(context, context.options.schedule,
                     split_shares(context.workload.options().batch, context.groups.replicas,
                                  context.options.split_size));
}

const StrategyRegistration registration{
    {.name = "ddp_model_parallel",
     .summary = "layers split over the devices of a rank, gradients summed across the ranks",
     .options = with_rank_options({"split_size", "schedule", "virtual_stages", "cut", "partition",
                                   "bucket_mb", "overlap", "compression"}),
     .multi_device = true,
     .dimensions = {"data", "pipeline"},
     .make = make}};

}  // namespace
}  // namespace stratagem::strategies
