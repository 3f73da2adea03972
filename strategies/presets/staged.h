// The common part of the presets of stages. They share one engine: a schedule over stages, a
// partition of the batch, and, if the mesh has some, replicas and sharded layers. A preset is the
// default of a name for whatever the command line leaves open.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/registry.h"
#include "strategies/strategy.h"
#include "strategies/tensor_parallel/layout.h"

namespace stratagem::presets {

/// Makes a strategy that runs plans of this outline. The stages are this rank's devices times the
/// ranks of its pipeline. `layout` is that of StagedStrategy.
std::unique_ptr<strategies::Strategy> make_staged(
    const strategies::StrategyContext& context, const strategies::Outline& outline,
    tensor_parallel::Layout layout = tensor_parallel::Layout::tensor);

struct StagedPreset {
  std::string name;
  std::string summary;
  /// The mesh's dimensions if none is given; empty: it has one device.
  std::vector<std::string> usual_dimensions;
  tensor_parallel::Layout layout = tensor_parallel::Layout::tensor;
  /// The state that it shards over replicas. If unset, --shard decides.
  std::optional<schedules::Sharded> shards = {};
  /// The schedule, whatever --schedule is; empty: --schedule decides. With "naive" stages work one
  /// after another on the whole batch.
  std::string schedule = {};
};

/// Returns an entry that spreads over every dimension of the mesh.
strategies::StrategyEntry staged_entry(StagedPreset preset);

}  // namespace stratagem::presets
