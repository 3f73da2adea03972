// Buckets of whole layers, which the replicas of one process exchange while they compute, and the
// devices that update them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "models/model.h"
#include "strategies/options.h"

namespace stratagem::data_parallel {

/// Returns [bucket]: the device that updates it. Each bucket, the largest first, goes to the device
/// that has the fewest bytes so far, like parameters in PyTorch 2.11's ZeroRedundancyOptimizer.
std::vector<int> owners_of(const std::vector<std::int64_t>& bytes, int devices);

/// The segments of a replica in one process.
struct Segments {
  std::vector<std::size_t> boundaries = {};  // the layers that begin segments 1, 2, ...
  std::vector<int> owners = {};              // [segment]: the device that updates it
  std::set<int> kept = {};                   // see stages::kept_groups()
};

/// Returns one segment of all layers, unless buckets are exchanged or layers recomputed. `width` is
/// that of the layers (ModelOptions). Parameters shrink by its square, and buckets with them, so
/// that a narrow copy of a model has about as many.
Segments segments_of(models::LayerSpan layers, const strategies::StrategyOptions& options,
                     int devices, double width);

std::int64_t bytes_of(std::span<const models::NamedTensor> tensors);

}  // namespace stratagem::data_parallel
