// What the presets have in common: each is a schedule over stages, a partition of the batch, and
// replicas where the mesh has some.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/strategy.h"
#include "strategies/tensor_parallel/parallel_layer.h"

namespace stratagem::strategies {

/// `partition` as for StagedStrategy. The stages are this rank's devices times the ranks of its
/// pipeline.
/// `layout` as for StagedStrategy.
std::unique_ptr<Strategy> make_staged(
    const StrategyContext& context, const std::string& schedule, std::vector<Slice> partition,
    tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);

/// Whether this rank's replica consists of several stages.
bool has_stages(const StrategyContext& context);

/// The options of every preset whose devices may be spread over ranks, before `own` ones.
std::vector<std::string> with_rank_options(std::vector<std::string> own);

}  // namespace stratagem::strategies
