// Groups layers that are gathered, scattered or summed together.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "models/model.h"
#include "strategies/plan.h"
#include "strategies/strategy.h"

namespace stratagem::stages {

struct LayerGroups {
  std::vector<int> per_stage = {};           // [stage]: its number of groups
  std::vector<std::size_t> boundaries = {};  // the layers that begin groups 1, 2, ...
  std::set<int> empty = {};                  // groups without parameters
  std::set<int> kept = {};                   // see kept_groups()
};

/// Returns the layers that begin groups of up to this many bytes; each group has a layer with
/// parameters. Layers without parameters stay with those before them.
std::vector<std::size_t> group_boundaries(models::LayerSpan layers, double group_bytes);

/// Returns the groups, beginning at `boundaries`, without a layer of --recompute-layers; none if it
/// is not given. Throws std::invalid_argument for an unknown layer.
std::set<int> kept_groups(models::LayerSpan layers, const std::vector<std::size_t>& boundaries,
                          const strategies::StrategyOptions& options);

/// Makes groups of one layer with parameters each or, with --shard-group-mb, of layers with up to
/// this many MiB together. Several replicas sum gradients that they keep whole in buckets, whose
/// sizes are those of whole layers: see bucket_boundaries(). Without overlap each stage is one
/// bucket. Layers without parameters stay with those before them. No group crosses a cut. A model
/// of less `width` has smaller groups, so that it has about as many.
LayerGroups groups_of(const models::LayerList& layers, const strategies::PlanRequest& request,
                      double width);

/// Returns the inputs of a strategy's plans, without the size of a batch.
strategies::PlanRequest plan_request(const strategies::StrategyContext& context);

}  // namespace stratagem::stages
