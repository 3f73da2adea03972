#include "strategies/sharding/layer_groups.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <limits>

#include "strategies/stages/partition.h"

namespace stratagem::sharding {
namespace {

using Boundaries = std::vector<std::size_t>;

/// Of groups that the first layers fill first.
Boundaries group_boundaries(models::LayerSpan layers, double group_bytes) {
  Boundaries boundaries;
  double filled = 0;
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const double bytes = stages::parameter_bytes(*layers[index]);
    if (bytes > 0 && filled > 0 && filled + bytes > group_bytes) {
      boundaries.push_back(index);
      filled = 0;
    }
    filled += bytes;
  }
  return boundaries;
}

/// Without overlap one bucket takes everything.
Boundaries bucket_boundaries(models::LayerSpan layers, const strategies::StrategyOptions& options,
                             double shrunk) {
  constexpr double everything = std::numeric_limits<double>::infinity();
  return options.overlap
             ? stages::bucket_boundaries(layers, strategies::bucket_bytes(options) * shrunk)
             : stages::bucket_boundaries(layers, everything, everything);
}

}  // namespace

LayerGroups groups_of(const models::LayerList& layers, const strategies::PlanRequest& request,
                      double width) {
  constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;
  const double shrunk = width * width;
  const strategies::StrategyOptions& options = request.options;
  const bool in_buckets = options.shard == "none" && request.arrangement.replicas > 1;
  const auto cuts = stages::boundaries_of(layers, options.cut);
  LayerGroups groups;
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage <= cuts.size(); ++stage) {
    const std::size_t end = stage < cuts.size() ? cuts[stage] : layers.size();
    const models::LayerSpan own = models::LayerSpan(layers).subspan(begin, end - begin);
    const Boundaries inner =
        in_buckets ? bucket_boundaries(own, options, shrunk)
                   : group_boundaries(own, options.shard_group_mb * bytes_per_mebibyte * shrunk);
    if (stage > 0) groups.boundaries.push_back(begin);
    for (const std::size_t boundary : inner) groups.boundaries.push_back(begin + boundary);
    groups.per_stage.push_back(static_cast<int>(inner.size()) + 1);
    const auto number = static_cast<int>(groups.boundaries.size());
    if (models::parameters(own).empty()) groups.empty.insert(number);
    begin = end;
  }
  return groups;
}

}  // namespace stratagem::sharding
