// What the presets of stages have in common. The engine is one: a schedule over stages, a partition
// of the batch, replicas and sharded layers where the mesh has some. A preset is what a name stands
// for where the command line leaves it open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strategies/registry.h"
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

struct StagedPreset {
  std::string name;
  std::string summary;
  /// Of the mesh, where none is given.
  std::vector<std::string> usual_dimensions;
  tensor_parallel::Layout layout = tensor_parallel::Layout::tensor;
  /// Over replicas, whatever --shard says: optimizer, gradients or parameters; empty: what that
  /// says.
  std::string shards = {};
  /// Stages work one after another, whatever --schedule says.
  bool one_at_a_time = false;
};

/// It spreads over every dimension of the mesh.
strategies::StrategyEntry staged_entry(StagedPreset preset);

}  // namespace stratagem::presets
