#include "strategies/presets/tensor.h"

#include <utility>

#include "strategies/presets/staged.h"
#include "strategies/slices.h"

namespace stratagem::strategies {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context, tensor_parallel::Layout layout) {
  const std::int64_t batch = context.workload.options().batch;
  const std::int64_t replicas = context.groups.replicas;
  if (!has_stages(context)) {
    return make_staged(context, "naive", share_shares(batch, replicas, /*parts=*/1), layout);
  }
  return make_staged(context, context.options.schedule,
                     split_shares(batch, replicas, context.options.split_size), layout);
}

}  // namespace

StrategyEntry tensor_entry(std::string name, std::string summary, tensor_parallel::Layout layout) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .options = with_rank_options({"async", "split_size", "schedule", "virtual_stages", "cut",
                                        "partition", "bucket_mb", "overlap", "compression"}),
          .multi_device = true,
          .dimensions = {"data", "pipeline", "tensor"},
          .make = [layout](const StrategyContext& context) { return make(context, layout); },
          .can_train =
              [layout](const models::ModelEntry& model) {
                const bool has_sequence = model.input_kind == models::InputKind::tokens;
                return !model.shared_sizes.empty() &&
                       (layout == tensor_parallel::Layout::tensor || has_sequence);
              }};
}

}  // namespace stratagem::strategies
