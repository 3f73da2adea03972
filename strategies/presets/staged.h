// What the presets have in common: each is a schedule over stages, a partition of the batch, and
// replicas where the mesh has some.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strategies/strategy.h"
#include "strategies/tensor_parallel/layout.h"

namespace stratagem::presets {

/// The parts of a batch of `samples`, one a micro-batch, of all replicas.
using Partition = std::function<std::vector<schedules::Slice>(std::int64_t samples)>;

/// The stages are this rank's devices times the ranks of its pipeline. `layout` as for
/// StagedStrategy.
std::unique_ptr<strategies::Strategy> make_staged(
    const strategies::StrategyContext& context, const std::string& schedule, Partition partition,
    tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);

/// Every replica's share in micro-batches of the context's split size.
Partition by_split_size(const strategies::StrategyContext& context);
/// Every replica's share in so many micro-batches.
Partition by_count(const strategies::StrategyContext& context, std::int64_t parts);

/// Whether this rank's replica consists of several stages.
bool has_stages(const strategies::StrategyContext& context);

}  // namespace stratagem::presets
