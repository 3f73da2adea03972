// Partition: assigns layers to stages.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/workload.h"
#include "strategies/options.h"
#include "strategies/runtime/device.h"

namespace stratagem::stages {

/// Returns the indices of the layers at which stages 1, 2, ... begin. Throws std::invalid_argument,
/// in one line, for a name that no layer has or cuts that are not in the model's order.
std::vector<std::size_t> boundaries_of(const models::LayerList& layers,
                                       const std::vector<std::string>& cut);

/// Returns the cut for `stages` stages, as layer names, by one of these rules:
///   tutorial  the model's own cut into two stages (ResNet: before layer3)
///   flops     equal floating-point operations
///   auto      tutorial for two stages, flops for any other number
/// Throws std::invalid_argument for tutorial with another number of stages, and for more stages
/// than layers.
std::vector<std::string> choose_cut(const models::Workload& workload, int stages,
                                    strategies::Partition rule);

/// Like choose_cut, by the time of each layer for one micro-batch of `samples`, forward and
/// backward, measured on `device`.
std::vector<std::string> balanced_cut(const models::Workload& workload, int stages,
                                      std::int64_t samples, runtime::Device& device,
                                      std::chrono::milliseconds limit);

/// Returns the bytes of a layer's parameters.
double parameter_bytes(const models::Layer& layer);

/// Returns the layers that begin buckets 1, 2, ..., in rising order. A backward pass fills buckets
/// from the last one; as in DistributedDataParallel that one has at most `first_bytes` of
/// parameters, the others `bucket_bytes`, unless a single layer has more. Layers without parameters
/// stay with those before them.
constexpr double first_bucket_bytes = 1024 * 1024;
std::vector<std::size_t> bucket_boundaries(models::LayerSpan layers, double bucket_bytes,
                                           double first_bytes = first_bucket_bytes);

}  // namespace stratagem::stages
