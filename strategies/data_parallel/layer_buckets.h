// Buckets of whole layers: what travels between the replicas of one process while they compute, and
// which device updates it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"
#include "strategies/options.h"

namespace stratagem::data_parallel {

/// [bucket]: the device that updates it. The largest bucket first, each goes to the device that
/// has the fewest bytes so far, as ZeroRedundancyOptimizer of PyTorch 2.11 shares out parameters.
std::vector<int> owners_of(const std::vector<std::int64_t>& bytes, int devices);

/// How a replica of one process is cut.
struct Segments {
  std::vector<std::size_t> boundaries = {};  // the layers that begin segments 1, 2, ...
  std::vector<int> owners = {};              // [segment]: the device that updates it
};

/// One segment, all layers, where nothing travels in buckets. `width` is that of the layers
/// (ModelOptions): parameters shrink by its square, and buckets with them, so that a narrow copy of
/// a model has about as many.
Segments segments_of(models::LayerSpan layers, const strategies::StrategyOptions& options,
                     int devices, double width);

std::int64_t bytes_of(std::span<const models::NamedTensor> tensors);

}  // namespace stratagem::data_parallel
