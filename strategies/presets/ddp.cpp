// ddp: the whole model on every device, each a rank of its own that trains its share of the batch.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"
#include "strategies/slices.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return make_staged(context, "naive",
                     share_shares(context.workload.options().batch, context.groups.replicas,
                                  context.options.accumulation_steps));
}

const StrategyRegistration registration{
    {.name = "ddp",
     .summary = "the whole model on every rank, gradients summed beside the backward pass",
     .options = with_rank_options({"bucket_mb", "overlap", "compression", "accumulation_steps"}),
     .multi_device = true,
     .dimensions = {"data"},
     .make = make}};

}  // namespace
}  // namespace stratagem::strategies
