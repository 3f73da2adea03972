// ddp: the whole model on every device, each a rank of its own that trains its share of the batch.
#include "strategies/presets/staged.h"
#include "strategies/registry.h"

namespace stratagem::presets {
namespace {

std::unique_ptr<strategies::Strategy> make_ddp(const strategies::StrategyContext& context) {
  return make_staged(context, "naive", by_count(context, context.options.accumulation_steps));
}

const strategies::StrategyRegistration ddp_registration{
    {.name = "ddp",
     .summary = "the whole model on every rank, gradients all-reduced while the backward pass runs",
     .options = strategies::option_names(
         {strategies::rank_options, strategies::replica_options, strategies::accumulation_options,
          strategies::shard_options, strategies::reshard_options, strategies::shard_choice,
          strategies::precision_options, strategies::reduction_options}),
     .multi_device = true,
     .dimensions = {"data"},
     .make = make_ddp}};

}  // namespace
}  // namespace stratagem::presets
