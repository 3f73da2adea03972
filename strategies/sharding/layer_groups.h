// Which layers are gathered, scattered or summed together.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "models/model.h"
#include "strategies/plan.h"

namespace stratagem::sharding {

struct LayerGroups {
  std::vector<int> per_stage = {};           // [stage]: how many
  std::vector<std::size_t> boundaries = {};  // the layers that begin groups 1, 2, ...
  std::set<int> empty = {};                  // groups without parameters
};

/// Groups of one layer with parameters each or, with --shard-group-mb, of as many as have no more
/// together. What several replicas keep whole is summed in buckets: see
/// stages::bucket_boundaries(); without overlap a stage is one. Layers without parameters stay with
/// those before them. No group crosses a cut. A model of less `width` has smaller groups, so that
/// it has about as many.
LayerGroups groups_of(const models::LayerList& layers, const strategies::PlanRequest& request,
                      double width);

}  // namespace stratagem::sharding
