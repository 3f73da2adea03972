// What the presets of stages have in common. The engine is one: a schedule over stages, a partition
// of the batch, replicas and sharded layers where the mesh has some. A preset is what a name stands
// for where the command line leaves it open.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/registry.h"
#include "strategies/strategy.h"
#include "strategies/tensor_parallel/layout.h"

namespace stratagem::presets {

/// A strategy that runs plans of this outline. The stages are this rank's devices times the ranks
/// of its pipeline. `layout` as for StagedStrategy.
std::unique_ptr<strategies::Strategy> make_staged(
    const strategies::StrategyContext& context, const strategies::Outline& outline,
    tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);

struct StagedPreset {
  std::string name;
  std::string summary;
  /// Of the mesh, where none is given; empty: it has one device.
  std::vector<std::string> usual_dimensions;
  tensor_parallel::Layout layout = tensor_parallel::Layout::tensor;
  /// The state that it shards over replicas. If unset, --shard decides.
  std::optional<schedules::Sharded> shards = {};
  /// Whatever --schedule says; empty: what that says. By "naive" stages work one after another on
  /// the whole batch.
  std::string schedule = {};
};

/// It spreads over every dimension of the mesh.
strategies::StrategyEntry staged_entry(StagedPreset preset);

}  // namespace stratagem::presets
