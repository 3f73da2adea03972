#include "strategies/sharding/layer_groups.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "strategies/stages/partition.h"

namespace stratagem::sharding {
namespace {

double bytes_of(const models::Layer& layer) {
  double bytes = 0;
  for (const auto& [name, tensor] : layer.parameters())
    bytes += static_cast<double>(tensor.nbytes());
  return bytes;
}

}  // namespace

LayerGroups group_layers(models::LayerSpan layers, const std::vector<std::size_t>& cuts,
                         double group_bytes) {
  LayerGroups groups;
  groups.per_stage = {1};
  std::vector<double> filled = {0};  // [group]
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const double bytes = bytes_of(*layers[index]);
    const bool cut = std::ranges::find(cuts, index) != cuts.end();
    const bool full = bytes > 0 && filled.back() > 0 && filled.back() + bytes > group_bytes;
    if (cut) {
      groups.per_stage.push_back(1);
    } else if (full) {
      ++groups.per_stage.back();
    }
    if (cut || full) {
      groups.boundaries.push_back(index);
      filled.push_back(0);
    }
    filled.back() += bytes;
  }
  for (std::size_t group = 0; group < filled.size(); ++group) {
    if (filled[group] == 0) groups.empty.insert(static_cast<int>(group));
  }
  return groups;
}

LayerGroups groups_of(const models::LayerList& layers, const strategies::StrategyOptions& options,
                      double width) {
  constexpr double bytes_per_mebibyte = 1024.0 * 1024.0;
  return group_layers(layers, stages::boundaries_of(layers, options.cut),
                      options.shard_group_mb * bytes_per_mebibyte * width * width);
}

}  // namespace stratagem::sharding
