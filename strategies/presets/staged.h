// What the presets have in common: each is a schedule over stages, a partition of the batch, and
// replicas where the mesh has some.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace stratagem::strategies {

/// `partition` as for StagedStrategy. The stages are this rank's devices times the ranks of its
/// pipeline.
std::unique_ptr<Strategy> make_staged(const StrategyContext& context, const std::string& schedule,
                                      std::vector<Slice> partition);

/// The options of every preset whose devices may be spread over ranks, before `own` ones.
std::vector<std::string> with_rank_options(std::vector<std::string> own);

}  // namespace stratagem::strategies
