// What the presets have in common: each is a schedule over stages, a partition of the batch, and
// replicas where the mesh has some.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/strategy.h"
#include "strategies/tensor_parallel/parallel_layer.h"

namespace stratagem::presets {

/// `partition` as for StagedStrategy. The stages are this rank's devices times the ranks of its
/// pipeline.
/// `layout` as for StagedStrategy.
std::unique_ptr<strategies::Strategy> make_staged(
    const strategies::StrategyContext& context, const std::string& schedule,
    std::vector<schedules::Slice> partition,
    tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);

/// Whether this rank's replica consists of several stages.
bool has_stages(const strategies::StrategyContext& context);

}  // namespace stratagem::presets
